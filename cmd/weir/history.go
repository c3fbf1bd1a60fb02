package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// event is one entry of the journal as the API shows it (OBJ-22).
type event struct {
	Seq          uint64
	At           string
	Kind         string
	Provider     string
	ConnectionID string
	Model        string
	RequestID    string
	Data         map[string]any
}

type historyFlags struct {
	provider, connection string
	since                time.Duration
	follow               bool
}

func historyCommand(g *gateway) *cobra.Command {
	var h historyFlags
	c := &cobra.Command{
		Use: "history", Short: "Tell the journal as a story: which answer moved what, until when", Args: cobra.NoArgs,
		Example: "  weir history --provider demo --since 1h\n  weir history --follow",
		RunE:    func(c *cobra.Command, _ []string) error { return g.history(c.Context(), h) },
	}
	f := c.Flags()
	f.StringVar(&h.provider, "provider", "", "only of this provider")
	f.StringVar(&h.connection, "connection", "", "only of this connection")
	f.DurationVar(&h.since, "since", 0, "only what happened in this time, such as 1h (default: all)")
	f.BoolVar(&h.follow, "follow", false, "go on with what happens from now")
	return c
}

func (g *gateway) history(ctx context.Context, h historyFlags) error {
	query := url.Values{"limit": {"1000"}}
	if h.provider != "" {
		query.Set("provider", h.provider)
	}
	if h.connection != "" {
		query.Set("connectionId", h.connection)
	}
	var oldest time.Time
	if h.since > 0 {
		oldest = time.Now().Add(-h.since)
	}
	after := uint64(0)
	for {
		query.Set("after", fmt.Sprint(after))
		var answer struct {
			Events []json.RawMessage
			Next   uint64
		}
		if err := g.get(ctx, "/api/events?"+query.Encode(), &answer); err != nil {
			return err
		}
		for _, raw := range answer.Events {
			if err := g.tell(raw, oldest); err != nil {
				return err
			}
		}
		if answer.Next == after || len(answer.Events) == 0 {
			break
		}
		after = answer.Next
	}
	if !h.follow {
		return nil
	}
	query.Del("limit")
	return g.followEvents(ctx, query, after)
}

// get is call without printing.
func (g *gateway) get(ctx context.Context, path string, dst any) error {
	body, err := g.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(dst); err != nil {
		return unreadable()
	}
	return nil
}

// followEvents reads the live feed until it ends or the person does.
func (g *gateway) followEvents(ctx context.Context, query url.Values, after uint64) error {
	query.Set("after", fmt.Sprint(after))
	body, err := g.do(ctx, request{method: http.MethodGet, path: "/api/events?" + query.Encode(), accept: "text/event-stream", slow: true})
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		if err := g.tell(json.RawMessage(data), time.Time{}); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fail(exitUnreachable, "the gateway ended the feed; it has stopped, or this reader was too slow")
}

// tell prints one event, as it is with --json.
func (g *gateway) tell(raw json.RawMessage, oldest time.Time) error {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return fail(exitFaulty, "an event of the gateway cannot be read; is this weir older than the gateway?")
	}
	if at, err := time.Parse(time.RFC3339, e.At); err == nil && at.Before(oldest) {
		return nil
	}
	if g.asJSON {
		_, err := fmt.Fprintln(g.app.out, strings.TrimSpace(string(raw)))
		return err
	}
	return g.app.say("%s", e.sentence())
}

// sentence says which answer, by which rule, moved what, until when (OBJ-23).
func (e *event) sentence() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  ", clock(e.At))
	if news := e.news(); news != "" {
		return b.String() + news
	}
	who := e.ConnectionID
	if who == "" {
		who = e.Provider
	}
	if e.Model != "" {
		who += " (" + e.Model + ")"
	}
	switch e.Kind {
	case "breaker.changed", "breaker.counted":
		return b.String() + e.breaker()
	case "lockout.set", "lockout.decayed", "lockout.cleared":
		return b.String() + e.lockout()
	case "connection.cooldown":
		fmt.Fprintf(&b, "%s cools down until %s%s", who, e.when("rateLimitedUntil"), e.probe())
	case "connection.error":
		fmt.Fprintf(&b, "%s failed", who)
	case "connection.cleared":
		if gone, _ := e.Data["forgotten"].(bool); gone {
			fmt.Fprintf(&b, "%s was deleted", who)
			break
		}
		fmt.Fprintf(&b, "%s is healthy again", who)
	case "connection.terminal":
		still := ""
		if e.number("rechecks")+e.number("expiredRetryCount") > 0 { // a test of it failed (COOL-53, COOL-59)
			still = "still "
		}
		fmt.Fprintf(&b, "%s is %s%s until a person or new credentials help", who, still, e.word("testStatus"))
		if e.word("recheckAt") != "" {
			fmt.Fprintf(&b, ", and is tested again at %s", e.when("recheckAt"))
		}
	case "connection.probe":
		fmt.Fprintf(&b, "%s failed its probe and cools down until %s%s", who, e.when("rateLimitedUntil"), e.probe())
	case "rejected.counted":
		fmt.Fprintf(&b, "%s refused a request", who)
	default:
		b.WriteString(strings.TrimSpace(e.Kind + " " + who))
	}
	if reason := e.word("lastErrorType", "reason"); reason != "" && e.Kind != "connection.cleared" {
		b.WriteString(", for " + reason)
	}
	b.WriteString(e.cause())
	return b.String()
}

// news is the sentence of an event that is about the gateway itself, not about an account. Empty: it is none.
func (e *event) news() string {
	subject, what, _ := strings.Cut(e.Kind, ".")
	switch subject {
	case "plugin":
		return e.pluginNews(what)
	case "config":
		if what == "rejected" {
			return "the configuration file was rejected, the one before stays in force: " + sentences(e.word("fault"))
		}
		return strings.TrimSpace("the configuration file " + e.word("file") + " is in force")
	case "settings":
		return "the stored settings are " + e.stored() + " now"
	case "store":
		if e.word("state") == "ok" {
			return "the store writes to disk again"
		}
		return "the store is " + e.word("state") + ": " + sentences(e.word("fault"))
	}
	return ""
}

// stored lists the settings that are stored, by their paths.
func (e *event) stored() string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(e.Data)) {
		b, err := json.Marshal(e.Data[path])
		if err != nil {
			continue
		}
		all = append(all, path+"="+short(string(b)))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// pluginNews names the plugin, or its file when nobody could read a name in it.
func (e *event) pluginNews(what string) string {
	who := "plugin " + strings.TrimSpace(e.word("name", "file")+" "+e.word("version"))
	part := func(name string) *event {
		inner, _ := e.Data[name].(map[string]any)
		return &event{Data: inner}
	}
	switch what {
	case "rejected":
		f := part("fault")
		who += " was rejected at " + f.word("step") + ": " + sentences(f.word("message"))
	case "quarantined":
		v := part("violation")
		who += " is in quarantine until " + part("quarantine").when("until")
		if kind := v.word("kind"); kind != "" {
			who += ", for " + kind + " in " + v.word("op")
		}
	case "restored":
		who += " is out of quarantine"
	default:
		who += " was " + what
	}
	return who
}

// cause tells the answer that moved it.
func (e *event) cause() string {
	c, ok := e.Data["cause"].(map[string]any)
	if !ok || e.Kind == "connection.cleared" {
		return ""
	}
	var b strings.Builder
	if status, ok := c["status"].(float64); ok && status > 0 {
		fmt.Fprintf(&b, ": an answer with status %.0f", status)
		if original, ok := c["originalStatus"].(float64); ok && original > 0 && original != status {
			fmt.Fprintf(&b, " (sent as %.0f)", original)
		}
	}
	if source, _ := c["source"].(string); source != "" {
		b.WriteString(" that said so in its " + strings.ReplaceAll(source, ":", " "))
	}
	if rule, _ := c["rule"].(string); rule != "" {
		fmt.Fprintf(&b, ", by the rule %v/%s", c["plugin"], rule)
	}
	if id := e.RequestID; id != "" {
		b.WriteString(", in request " + id)
	}
	return b.String()
}

func (e *event) word(names ...string) string {
	for _, n := range names {
		if s, ok := e.Data[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// when reads a time.
func (e *event) when(name string) string {
	if s := e.word(name); s != "" {
		return clock(s)
	}
	return "an unknown time"
}
