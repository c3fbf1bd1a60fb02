package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// dialects are those of clients and of upstreams.
var dialects = []string{"chat", "responses", "messages", "gemini"}

// result is one scenario of one client.
type result struct {
	client, scenario string
	upstream         string
	passed           bool
	reason           string
}

// read takes a line that a client's program printed: client scenario pass|fail reason.
func read(line, upstream string) (result, bool) {
	f := strings.SplitN(line, " ", 4)
	if len(f) < 3 || f[2] != "pass" && f[2] != "fail" {
		return result{}, false
	}
	r := result{client: f[0], scenario: f[1], upstream: upstream, passed: f[2] == "pass"}
	if len(f) == 4 {
		r.reason = f[3]
	}
	return r, true
}

// dialectOf is the dialect that a client speaks.
func dialectOf(client string) string {
	switch {
	case strings.Contains(client, "responses"), client == "codex":
		return "responses"
	case strings.Contains(client, "anthropic"), strings.HasPrefix(client, "claude"):
		return "messages"
	case strings.Contains(client, "genai"), strings.Contains(client, "google"), strings.Contains(client, "gemini"):
		return "gemini"
	}
	return "chat"
}

// matrix holds what came of all runs.
type matrix struct {
	results []result
}

func (m *matrix) add(r result) { m.results = append(m.results, r) }

func (m *matrix) passed() int { return len(m.results) - m.failed() }

func (m *matrix) failed() int {
	n := 0
	for _, r := range m.results {
		if !r.passed {
			n++
		}
	}
	return n
}

// print writes failures, a row for each client with a column for each upstream, and the sums.
func (m *matrix) print(out io.Writer) {
	fmt.Fprintln(out)
	for _, r := range m.results {
		if !r.passed {
			fmt.Fprintf(out, "failed: %s (%s) on %s: %s: %s\n", r.client, dialectOf(r.client), r.upstream, r.scenario, r.reason)
		}
	}
	fmt.Fprintf(out, "\n%-22s %-10s", "client", "speaks")
	for _, u := range dialects {
		fmt.Fprintf(out, " %11s", u)
	}
	fmt.Fprintln(out)
	for _, c := range m.clients() {
		fmt.Fprintf(out, "%-22s %-10s", c, dialectOf(c))
		for _, u := range dialects {
			fmt.Fprintf(out, " %11s", m.cell(c, u))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\n%d passed, %d failed\n", m.passed(), m.failed())
}

func (m *matrix) clients() []string {
	var names []string
	for _, r := range m.results {
		if !slices.Contains(names, r.client) {
			names = append(names, r.client)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return slices.Index(dialects, dialectOf(a)) - slices.Index(dialects, dialectOf(b))
	})
	return names
}

func (m *matrix) cell(client, upstream string) string {
	passed, all := 0, 0
	for _, r := range m.results {
		if r.client == client && r.upstream == upstream {
			all++
			if r.passed {
				passed++
			}
		}
	}
	if all == 0 {
		return "-"
	}
	mark := " "
	if dialectOf(client) == upstream {
		mark = "*" // its own
	}
	return fmt.Sprintf("%d/%d%s", passed, all, mark)
}
