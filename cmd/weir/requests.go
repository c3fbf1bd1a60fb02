package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/host/ledger"
)

func requestsCommands(g *gateway) *cobra.Command {
	c := &cobra.Command{
		Use: "requests", Short: "The ledger: what became of each request", Example: "  weir requests list --outcome failed --since 1h",
	}
	c.AddCommand(requestsList(g), requestsShow(g))
	return c
}

func requestsList(g *gateway) *cobra.Command {
	given := map[string]*string{}
	limit := 50
	c := &cobra.Command{
		Use: "list", Short: "List requests, newest first", Args: cobra.NoArgs,
		Example: "  weir requests list --provider openai --since 1h\n  weir requests list --outcome failed --json",
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range given {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			var answer struct {
				Requests []ledger.Row
				Total    int
			}
			show, err := g.call(c.Context(), request{method: http.MethodGet, path: "/api/requests?" + query.Encode()}, &answer)
			if !show {
				return err
			}
			var rows [][]string
			for i := range answer.Requests {
				rows = append(rows, requestLine(&answer.Requests[i]))
			}
			heading := []string{"at", "request", "asked for", "answered by", "status", "outcome", "attempts", "tokens", "usd", "took"}
			if err := g.app.table(heading, rows); err != nil || answer.Total <= len(rows) {
				return err
			}
			return g.app.say("%d of %d; see more with --limit, or fewer with --since", len(rows), answer.Total)
		},
	}
	for flag, f := range map[string]struct{ query, means string }{
		"provider":   {"provider", "only of this provider"},
		"connection": {"connectionId", "only of this connection"},
		"model":      {"model", "only of this model, as it was asked for or as it answered"},
		"key":        {"apiKeyId", "only of the client with this key id"},
		"outcome":    {"outcome", "only of this outcome: ok, partial, client_error, failed or cancelled"},
		"reason":     {"reason", "only of this reason, such as quota_exhausted"},
		"since":      {"since", "only what began since then: a time, or how long ago, such as 1h"},
		"until":      {"until", "only what began before then"},
	} {
		given[f.query] = c.Flags().String(flag, "", f.means)
	}
	c.Flags().IntVar(&limit, "limit", limit, "how many at most, up to 1000")
	return c
}

// requestLine is a request as one line of a table.
func requestLine(r *ledger.Row) []string {
	outcome := r.Outcome
	if r.Reason != nil {
		outcome += ": " + *r.Reason
	}
	return []string{
		clock(r.At), r.RequestID, r.RequestedModel, served(r), strconv.Itoa(r.Status), outcome, strconv.Itoa(len(r.Attempts)),
		inOut(&r.Tokens), dollars(r.CostUSD), milliseconds(&r.DurationMS),
	}
}

func served(r *ledger.Row) string {
	if r.Provider == nil {
		return ""
	}
	name := *r.Provider + "/" + text(r.Model)
	if r.ConnectionID != nil {
		name += " on " + *r.ConnectionID
	}
	return name
}

// inOut are the tokens of a request; what is not known is a question mark.
func inOut(t *ledger.Tokens) string {
	if t.Input == nil && t.Output == nil {
		return ""
	}
	return known(t.Input) + " in, " + known(t.Output) + " out"
}

func known(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}

func dollars(usd *float64) string {
	if usd == nil {
		return ""
	}
	return strconv.FormatFloat(*usd, 'f', -1, 64)
}

func milliseconds(ms *int64) string {
	if ms == nil {
		return ""
	}
	return strconv.FormatInt(*ms, 10) + "ms"
}

func requestsShow(g *gateway) *cobra.Command {
	return &cobra.Command{
		Use: "show REQUEST", Short: "Show one request with its attempts, and its gates and texts while they are kept", Args: cobra.ExactArgs(1),
		Example: "  weir requests show ZjQxN2E5-1c",
		RunE: func(c *cobra.Command, args []string) error {
			var r ledger.Row
			show, err := g.call(c.Context(), request{method: http.MethodGet, path: "/api/requests/" + url.PathEscape(args[0])}, &r)
			if !show {
				return err
			}
			return g.app.showRequest(&r)
		},
	}
}

func (a *app) showRequest(r *ledger.Row) error {
	facts := [][]string{
		{"request", r.RequestID}, {"at", clock(r.At)}, {"client", requestClient(r)}, {"asked for", r.RequestedModel + requestRoute(r)},
		{"answered by", served(r)}, {"status", strconv.Itoa(r.Status)}, {"outcome", requestLine(r)[5]},
		{"took", milliseconds(&r.DurationMS) + ", first byte after " + or(milliseconds(r.TTFTMS), "never") + ", waited " + milliseconds(&r.WaitedMS)},
		{"tokens", tokensOf(&r.Tokens)}, {"usd", strings.TrimSpace(dollars(r.CostUSD) + " " + r.Prices)},
	}
	for _, n := range r.Notes {
		facts = append(facts, []string{"note", n})
	}
	if err := a.table([]string{"what", "is"}, facts); err != nil {
		return err
	}
	if err := a.showAttempts(r.Attempts); err != nil {
		return err
	}
	if len(r.Gates) > 0 {
		var rows [][]string
		for _, x := range r.Gates {
			rows = append(rows, []string{strconv.Itoa(x.N), x.Name, x.Result, x.Detail, milliseconds(&x.AtMS)})
		}
		if err := a.under("n", "gate", "result", "detail", "at")(rows); err != nil {
			return err
		}
	}
	if r.Bodies == nil {
		return nil
	}
	for _, part := range [...]struct{ name, text string }{{"request", r.Bodies.Request}, {"answer", r.Bodies.Answer}} {
		if _, err := fmt.Fprintf(a.out, "\n%s:\n%s\n", strings.ToUpper(part.name), lines(part.text)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showAttempts(attempts []ledger.Attempt) error {
	var rows [][]string
	for i := range attempts {
		x := &attempts[i]
		status := ""
		if x.Status != nil {
			status = strconv.Itoa(*x.Status)
		}
		if x.OriginalStatus != nil && x.Status != nil && *x.OriginalStatus != *x.Status {
			status += fmt.Sprintf(" (sent as %d, by %s)", *x.OriginalStatus, text(x.RestatedBy))
		}
		reason := text(x.Reason)
		if x.Scope != nil {
			reason += " of the " + *x.Scope
		}
		rows = append(rows, []string{
			strconv.Itoa(i + 1), x.Provider + "/" + x.Model + " on " + x.ConnectionID, status, reason, text(x.DecidedBy),
			milliseconds(x.FirstByteMS), milliseconds(&x.DurationMS), yes(x.Billed),
		})
	}
	if len(rows) == 0 {
		return nil
	}
	return a.under("#", "attempt", "status", "reason", "decided by", "first byte", "took", "billed")(rows)
}

// under prints a table behind an empty line.
func (a *app) under(heading ...string) func(rows [][]string) error {
	return func(rows [][]string) error {
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
		return a.table(heading, rows)
	}
}

func requestClient(r *ledger.Row) string {
	who := or(text(r.Client), "unknown") + ", " + r.ClientDialect
	if r.APIKeyID != nil {
		who += ", key " + *r.APIKeyID
	}
	if r.ClientRetry != nil && *r.ClientRetry > 0 {
		who += fmt.Sprintf(", its retry %d", *r.ClientRetry)
	}
	return who
}

func requestRoute(r *ledger.Row) string {
	if r.Route == nil {
		return ", which is not known"
	}
	if r.Route.Kind == "combo" {
		return ", the combo " + r.Route.Name
	}
	return ""
}

func tokensOf(t *ledger.Tokens) string {
	var parts []string
	add := func(name string, n *int64) {
		if n != nil {
			parts = append(parts, strconv.FormatInt(*n, 10)+" "+name)
		}
	}
	add("in", t.Input)
	add("of them read from the cache", t.CachedRead)
	add("of them written to it", t.CacheWrite)
	add("out", t.Output)
	add("of them reasoning", t.Reasoning)
	switch {
	case t.Estimated:
		parts = append(parts, "the client was told an estimate")
	case len(parts) == 0:
		parts = append(parts, "not stated")
	}
	return strings.Join(parts, ", ")
}

// lines is a text of several lines that cannot steer the terminal.
func lines(s string) string {
	all := strings.Split(s, "\n")
	for i := range all {
		all[i] = printable(strings.TrimSuffix(all[i], "\r"))
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
