package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// column is one figure of a table.
type column struct {
	name   string
	show   func(r *Results, c, t, base string) string
	stream bool // only in cases with streams
}

func plain(name, format string, f func(Row) float64) column {
	return column{name: name, show: func(r *Results, c, t, _ string) string {
		v, _ := r.Median(c, t, f)
		return fmt.Sprintf(format, v)
	}}
}

// versus compares with the baseline; a figure of 0 means that it was not measured.
func versus(name, format string, f func(Row) float64, by func(own, base float64) float64) column {
	return column{name: name, show: func(r *Results, c, t, base string) string {
		own, _ := r.Median(c, t, f)
		b, _ := r.Median(c, base, f)
		if own == 0 || b == 0 {
			return "-"
		}
		return fmt.Sprintf(format, by(own, b))
	}}
}

func inStreams(c column) column { c.stream = true; return c }

func requests(r Row) float64 { return r.RPS }
func p50(r Row) float64      { return r.Latency["p50"] }
func p99(r Row) float64      { return r.Latency["p99"] }
func delay50(r Row) float64  { return r.Delay["p50"] }
func mebi(r Row) float64     { return float64(r.RSSAfter) / (1 << 20) }

func divide(own, base float64) float64  { return own / base }
func inverse(own, base float64) float64 { return base / own }
func minus(own, base float64) float64   { return own - base }

var columns = []column{
	plain("req/s", "%.0f", requests),
	versus("x base", "%.2f", requests, divide),
	plain("CPU us/req", "%.1f", Row.CPUPerRequest),
	versus("x base per CPU", "%.2f", Row.CPUPerRequest, inverse),
	plain("CPU %", "%.0f", Row.Busy),
	plain("p50 us", "%.0f", p50),
	versus("- base", "%+.0f", p50, minus),
	plain("p99 us", "%.0f", p99),
	versus("- base", "%+.0f", p99, minus),
	inStreams(plain("chunks/s", "%.0f", func(r Row) float64 { return ratio(float64(r.Events), r.Seconds) })),
	inStreams(plain("CPU us/chunk", "%.2f", Row.CPUPerEvent)),
	inStreams(plain("chunk delay p50 us", "%.0f", delay50)),
	inStreams(versus("- base", "%+.0f", delay50, minus)),
	plain("RSS MiB", "%.1f", mebi),
	plain("success", "%.4f", Row.Success),
}

// Tables prints one table for each case: medians over the rounds, and ratios to or differences from the target base.
func (r *Results) Tables(w io.Writer, base string) error {
	for _, c := range r.Cases {
		fmt.Fprintf(w, "\n%s\n", c)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		if c == ColdStart || c == Idle {
			r.start(tw, c)
		} else {
			r.load(tw, c, base)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Results) start(w io.Writer, c string) {
	fmt.Fprint(w, "target\tfirst reply ms\tRSS MiB\tCPU s\t\n")
	for _, t := range r.Targets {
		if len(r.Of(c, t)) == 0 {
			continue
		}
		first, _ := r.Median(c, t, func(row Row) float64 { return row.FirstReply })
		rss, _ := r.Median(c, t, mebi)
		cpu, _ := r.Median(c, t, func(row Row) float64 { return row.CPU })
		reply := "-"
		if c == ColdStart {
			reply = fmt.Sprintf("%.0f", first)
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.2f\t\n", t, reply, rss, cpu)
	}
}

func (r *Results) load(w io.Writer, c, base string) {
	stream := slices.ContainsFunc(r.Targets, func(t string) bool {
		rows := r.Of(c, t)
		return len(rows) > 0 && rows[0].Stream
	})
	shown := slices.DeleteFunc(slices.Clone(columns), func(col column) bool { return col.stream && !stream })
	head := []string{"target"}
	for _, col := range shown {
		head = append(head, col.name)
	}
	fmt.Fprintf(w, "%s\terrors\t\n", strings.Join(head, "\t"))
	for _, t := range r.Targets {
		rows := r.Of(c, t)
		if len(rows) == 0 {
			continue
		}
		line := []string{t}
		for _, col := range shown {
			line = append(line, col.show(r, c, t, base))
		}
		fmt.Fprintf(w, "%s\t%s\t\n", strings.Join(line, "\t"), cmp.Or(kinds(rows), "none"))
	}
}

func kinds(rows []Row) string {
	sum := map[string]int{}
	for _, r := range rows {
		for k, n := range r.ErrorKinds {
			sum[k] += n
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		out = append(out, fmt.Sprintf("%s:%d", k, sum[k]))
	}
	return strings.Join(out, " ")
}
