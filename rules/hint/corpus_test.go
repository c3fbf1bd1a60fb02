package hint_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/weirgate/weir/rules/hint"
)

// said is one line of testdata/retry-hints.jsonl, more-hints.jsonl or public.jsonl.
type said struct {
	ID      string            `json:"id"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Now     time.Time         `json:"now"`
	WantMS  *int64            `json:"expect_ms"`
}

// lines are the recorded ways, and more of their kinds.
func lines(t testing.TB) []said {
	t.Helper()
	var all []said
	for _, file := range []string{"retry-hints.jsonl", "more-hints.jsonl", "public.jsonl"} {
		f, err := os.Open("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			var s said
			if err := json.Unmarshal(sc.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		if err := sc.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (s said) header() map[string][]string {
	h := map[string][]string{}
	for k, v := range s.Headers {
		h[k] = []string{v}
	}
	return h
}

// notYet are the lines whose wait is not read as expected; a line that comes to pass must leave the list.
var notYet = map[string]bool{}

// Every recorded way of saying "when to retry" is read as recorded (COOL-14).
func TestCorpus(t *testing.T) {
	passed := 0
	for _, s := range lines(t) {
		t.Run("COOL-14/"+s.ID, func(t *testing.T) {
			got, ok := hint.Read(s.header(), []byte(s.Body), s.Now)
			good := ok == (s.WantMS != nil) && (!ok || got.Wait.Milliseconds() == *s.WantMS)
			switch {
			case good && notYet[s.ID]:
				t.Errorf("is read now: take it out of notYet")
			case !good && !notYet[s.ID]:
				want := "nothing"
				if s.WantMS != nil {
					want = (time.Duration(*s.WantMS) * time.Millisecond).String()
				}
				t.Errorf("got %v %q (%v), want %s", got.Wait, got.Source, ok, want)
			}
			if good {
				passed++
			}
		})
	}
	t.Logf("%d of %d lines are read as recorded", passed, len(lines(t)))
}
