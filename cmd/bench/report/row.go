// Package report turns the results of benchmark runs into medians, ratios to a baseline and a verdict for each goal.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Quantiles are those of one distribution: p50, p90, p99, p999, max and mean, in microseconds.
type Quantiles map[string]float64

// Row is the result of one run of the load generator, one line of a results file.
type Row struct {
	Target string `json:"target"`
	Case   string `json:"case"`

	Stream  bool    `json:"stream,omitempty"`
	Body    int     `json:"body,omitempty"`
	Conns   int     `json:"c,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`

	OK         int            `json:"ok"`
	Errors     int            `json:"errors"`
	ErrorKinds map[string]int `json:"error_kinds,omitempty"`
	RPS        float64        `json:"rps"`
	Bytes      int64          `json:"bytes_per_reply,omitempty"`

	Latency  Quantiles `json:"latency_us,omitempty"`
	TTFB     Quantiles `json:"ttfb_us,omitempty"`
	Gap      Quantiles `json:"gap_us,omitempty"`
	Delay    Quantiles `json:"chunk_delay_us,omitempty"`
	PacerLag Quantiles `json:"pacer_lag_us,omitempty"`
	Planned  int       `json:"planned,omitempty"`
	Events   int64     `json:"events,omitempty"`

	CPU       float64 `json:"cpu_s,omitempty"` // of the target's processes in the measured time
	RSSBefore int64   `json:"rss_before,omitempty"`
	RSSAfter  int64   `json:"rss_after,omitempty"`

	FirstReply float64 `json:"first_reply_ms,omitempty"` // case coldstart
	Listening  float64 `json:"listening_ms,omitempty"`
	LastError  string  `json:"last_error,omitempty"`
}

// The cases that are not a load.
const (
	ColdStart = "coldstart"
	Idle      = "idle"
)

// Success is the share of requests that were answered well.
func (r Row) Success() float64 { return ratio(float64(r.OK), float64(r.OK+r.Errors)) }

// CPUPerRequest is in microseconds.
func (r Row) CPUPerRequest() float64 { return ratio(r.CPU*1e6, float64(r.OK)) }

// CPUPerEvent is in microseconds, for each chunk of the streams.
func (r Row) CPUPerEvent() float64 { return ratio(r.CPU*1e6, float64(r.Events)) }

// Busy is the share of one core that the target used, in percent.
func (r Row) Busy() float64 { return ratio(100*r.CPU, r.Seconds) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Results are the rows of a run by case and target. The order is that in which they were first seen.
type Results struct {
	Cases, Targets []string
	rows           map[string][]Row
}

// Add appends one row.
func (r *Results) Add(row Row) {
	if r.rows == nil {
		r.rows = map[string][]Row{}
	}
	if !slices.Contains(r.Cases, row.Case) {
		r.Cases = append(r.Cases, row.Case)
	}
	if !slices.Contains(r.Targets, row.Target) {
		r.Targets = append(r.Targets, row.Target)
	}
	k := row.Case + " " + row.Target
	r.rows[k] = append(r.rows[k], row)
}

// Of returns the rows of one case and target, one a round.
func (r *Results) Of(caseName, target string) []Row { return r.rows[caseName+" "+target] }

// Median returns the median of a figure over the rounds; false when there was no round.
func (r *Results) Median(caseName, target string, figure func(Row) float64) (float64, bool) {
	rows := r.Of(caseName, target)
	v := make([]float64, 0, len(rows))
	for _, row := range rows {
		v = append(v, figure(row))
	}
	slices.Sort(v)
	n := len(v)
	switch {
	case n == 0:
		return 0, false
	case n%2 == 1:
		return v[n/2], true
	}
	return (v[n/2-1] + v[n/2]) / 2, true
}

// Read reads a results file: one Row in JSON a line.
func Read(in io.Reader) (*Results, error) {
	r := new(Results)
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		if len(sc.Bytes()) == 0 {
			continue
		}
		var row Row
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("line %d of the results: %w", n, err)
		}
		r.Add(row)
	}
	return r, sc.Err()
}
