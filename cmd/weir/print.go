package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints rows under a heading, in columns.
func (a *app) table(heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(heading, "\t")))
	for _, r := range rows {
		for i, cell := range r {
			if cell == "" {
				r[i] = "-"
			}
			r[i] = printable(r[i])
		}
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

// printable replaces control characters: names come from other people and must not steer the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '·'
		}
		return r
	}, s)
}

func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintln(a.out, printable(fmt.Sprintf(format, args...)))
	return err
}

// short cuts a long text, so that a line stays one that a person reads.
func short(s string) string {
	const most = 120
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// sentences writes the lines of a text as one line.
func sentences(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
}

// clock prints a time of the API in the local zone; what is no time is printed as it is.
func clock(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orAll(s []string) string {
	if len(s) == 0 {
		return "all"
	}
	return strings.Join(s, ",")
}
