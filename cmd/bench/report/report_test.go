package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func row(c, target string, rps, cpu, p50 float64) Row {
	return Row{Target: target, Case: c, RPS: rps, OK: 1000, Seconds: 1, CPU: cpu, Latency: Quantiles{"p50": p50, "p99": 2 * p50}}
}

func sample() *Results {
	r := new(Results)
	for _, x := range []float64{1, 3, 2} { // medians are those of 2
		r.Add(row("max1k", "ref", 1000*x, 0.1*x, 100*x))
		r.Add(row("max1k", "weir", 950*x, 0.1*x/0.93, 100*x))
		r.Add(row("max100k", "ref", 100*x, 0.1*x, 1))
		r.Add(row("max100k", "weir", 100*x, 0.2*x, 1))
		r.Add(row("open500", "ref", 500, 0.1, 100*x))
		r.Add(row("open500", "weir", 500, 0.1, 100*x+79))
	}
	s := row("stream", "weir", 10, 0.007, 1)
	s.Stream, s.Events, s.Errors, s.ErrorKinds = true, 2000, 2, map[string]int{"timeout": 2}
	r.Add(s)
	r.Add(Row{Target: "weir", Case: Idle, RSSAfter: 61e6})
	r.Add(Row{Target: "weir", Case: ColdStart, FirstReply: 299})
	return r
}

func TestVerdicts(t *testing.T) {
	var out bytes.Buffer
	missed, err := sample().Verdicts(&out, "weir", "ref")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if strings.HasSuffix(strings.TrimSpace(line), "reached") {
			got = append(got, "reached")
		} else if strings.Contains(line, "MISSED") {
			got = append(got, "missed")
		}
	}
	want := "reached missed missed reached missed reached"
	if strings.Join(got, " ") != want || missed != 3 {
		t.Errorf("%v, %d missed; want %s\n%s", got, missed, want, &out)
	}
	for _, figure := range []string{"0.930", "0.500", "3.50", "79", "61.0", "299"} {
		if !strings.Contains(out.String(), figure) {
			t.Errorf("%s is not shown:\n%s", figure, &out)
		}
	}
	out.Reset()
	if missed, _ := new(Results).Verdicts(&out, "weir", "ref"); missed != 0 || strings.Count(out.String(), "not measured") != len(Goals) {
		t.Errorf("without results: %d missed\n%s", missed, &out)
	}
}

func TestTables(t *testing.T) {
	var out bytes.Buffer
	if err := sample().Tables(&out, "ref"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"max1k", "1900", "0.95", "0.93", "+79", "timeout:2", "0.9980", "coldstart"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, &out)
		}
	}
}

func TestReadBack(t *testing.T) {
	var file bytes.Buffer
	enc := json.NewEncoder(&file)
	want := sample()
	for _, c := range want.Cases {
		for _, target := range want.Targets {
			for _, r := range want.Of(c, target) {
				if err := enc.Encode(r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	_, _ = want.Verdicts(&a, "weir", "ref")
	_, _ = got.Verdicts(&b, "weir", "ref")
	if a.String() != b.String() {
		t.Errorf("read back:\n%s\nwant\n%s", &b, &a)
	}
	if _, err := Read(strings.NewReader("{}\nnonsense")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}
