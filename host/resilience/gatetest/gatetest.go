// Package gatetest plays histories on a ladder of gates: scripts of commands at given times, each answered by what a
// gate said or what changed. It is for tests of the gates only.
//
// A script is a file for datadriven. Its directives are
//
//	settings base=3s steps=5 hints=true max=30m            (of the category apikey; oauth-base=, oauth-hints=, ...)
//	connection a [provider=openai] [disable-cooling] [compatible] [per-model] [category=oauth]
//	at 30s                                                 followed by lines, one command each:
//
//	admit T a [MODEL]        ask for an attempt; the ticket is called T
//	fail T REASON [...]      end T: scope= hint= cooldown= status= original= terminal[=STATE] exact own-deadline request-scoped
//	ok T | ignore T | cancel T
//	try a REASON [...]       admit and fail in one step
//	use a [MODEL]            admit and succeed in one step
//	show a                   the record
//	reset a | clear a | passed a | forget a
//	credentials a N [quiet]  the connection gets new credentials, under revision N; quiet: nobody tells the gates
//	recount a N [KEY]        the process starts and counts revisions anew; KEY: the secret in the environment by now
//	restart                  go on from a snapshot
//	replay                   go on from the journal alone
//	apply KIND a REVISION JSON
package gatetest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Start is the time of "at 0s".
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Defaults are the settings of a script that names none: the defaults of COOL-10.
func Defaults() *settings.Values {
	return &settings.Values{
		ConnectionCooldown: settings.Cooldown{
			OAuth:  settings.CooldownProfile{Base: 5 * time.Second, MaxSteps: 8},
			APIKey: settings.CooldownProfile{Base: 3 * time.Second, MaxSteps: 5, UseHints: true},
			Local:  settings.CooldownProfile{Base: 2 * time.Second, MaxSteps: 3},
		},
		MaxCooldown: 30 * time.Minute,
	}
}

// play is the world of one script.
type play struct {
	make     func(*account.Book) []resilience.Gate
	values   *settings.Values
	targets  map[string]catalog.Target
	tickets  map[string]resilience.Ticket
	book     *account.Book
	ladder   *resilience.Ladder
	journal  []store.Event
	warnings []string
	now      time.Time
}

// Run plays every script in testdata of the package under test, on the gates that make returns for a book.
func Run(t *testing.T, make func(*account.Book) []resilience.Gate) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		p := newPlay(make)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := p.directive(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func newPlay(gates func(*account.Book) []resilience.Gate) *play {
	p := &play{
		make: gates, values: Defaults(), now: Start,
		targets: map[string]catalog.Target{}, tickets: map[string]resilience.Ticket{},
	}
	p.rebuild()
	return p
}

// rebuild starts with empty gates, as a new process does.
func (p *play) rebuild() {
	p.book = account.NewBook(func(w string) { p.warnings = append(p.warnings, w) })
	p.ladder = resilience.NewLadder(p.make(p.book)...)
}

func (p *play) at() resilience.Moment {
	return resilience.Moment{Now: p.now, Catalog: &catalog.Snapshot{Settings: p.values}}
}

func (p *play) directive(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "settings":
		return "", p.settings(d.CmdArgs)
	case "connection":
		return "", p.connection(d.CmdArgs)
	case "at":
		after, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			return "", err
		}
		p.now = Start.Add(after)
		return p.lines(d.Input)
	}
	return "", fmt.Errorf("no directive %q", d.Cmd)
}

func (p *play) settings(args []datadriven.CmdArg) error {
	v := *p.values
	for _, a := range args {
		profile, name := &v.ConnectionCooldown.APIKey, a.Key
		if rest, ok := strings.CutPrefix(name, "oauth-"); ok {
			profile, name = &v.ConnectionCooldown.OAuth, rest
		} else if rest, ok := strings.CutPrefix(name, "local-"); ok {
			profile, name = &v.ConnectionCooldown.Local, rest
		}
		var err error
		switch name {
		case "base":
			profile.Base, err = time.ParseDuration(a.Vals[0])
		case "steps":
			profile.MaxSteps, err = strconv.Atoi(a.Vals[0])
		case "hints":
			profile.UseHints, err = strconv.ParseBool(a.Vals[0])
		case "max":
			v.MaxCooldown, err = time.ParseDuration(a.Vals[0])
		default:
			err = fmt.Errorf("no setting %q", a.Key)
		}
		if err != nil {
			return err
		}
	}
	p.values = &v
	return nil
}

func (p *play) connection(args []datadriven.CmdArg) error {
	t := catalog.Target{
		Provider:   &catalog.Provider{ID: "openai", Category: catalog.APIKey},
		Connection: &catalog.Connection{ID: args[0].Key, Active: true, CredentialRevision: 1, Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret("key-1")}},
		Model:      "gpt-5",
	}
	for _, a := range args[1:] {
		switch a.Key {
		case "provider":
			t.Provider.ID = a.Vals[0]
			for _, other := range p.targets {
				if other.Provider.ID == t.Provider.ID {
					t.Provider = other.Provider
				}
			}
		case "category":
			t.Provider.Category = catalog.Category(a.Vals[0])
		case "compatible":
			t.Provider.Compatible = true
		case "per-model":
			t.Provider.PerModel = true
		case "passthrough":
			t.Provider.Passthrough = true
		case "data":
			key, value, _ := strings.Cut(a.Vals[0], ":")
			t.Connection.Data = map[string]string{key: value}
		case "disable-cooling":
			t.Connection.DisableCooling = true
		default:
			return fmt.Errorf("no property %q of a connection", a.Key)
		}
	}
	t.Connection.Provider = t.Provider.ID
	t.Provider.Connections = append(t.Provider.Connections, t.Connection)
	p.targets[t.Connection.ID] = t
	return nil
}

func (p *play) lines(input string) (string, error) {
	var out strings.Builder
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		answer, err := p.command(words[0], words[1:])
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		fmt.Fprintln(&out, answer)
	}
	for _, w := range p.warnings {
		fmt.Fprintln(&out, "warning:", w)
	}
	p.warnings = nil
	return out.String(), nil
}

func (p *play) command(name string, args []string) (string, error) {
	switch name {
	case "restart":
		return p.restart()
	case "replay":
		return p.replay()
	}
	if len(args) == 0 {
		return "", fmt.Errorf("needs an argument")
	}
	switch name {
	case "admit":
		return p.admit(args[0], args[1], args[2:])
	case "fail":
		return p.fail(p.tickets[args[0]], args[1:])
	case "ok":
		return p.events(p.ladder.Settle(p.at(), p.tickets[args[0]], resilience.Outcome{OK: true})), nil
	case "ignore":
		return p.events(p.ladder.Settle(p.at(), p.tickets[args[0]], resilience.Outcome{Ignore: true, Verdict: verdict(wire.Timeout)})), nil
	case "cancel":
		p.ladder.Cancel(p.at(), p.tickets[args[0]])
		return "cancelled", nil
	case "try", "use":
		model := []string(nil)
		if name == "use" {
			model = args[1:]
		}
		if answer, err := p.admit("", args[0], model); err != nil || answer != "admitted" {
			return answer, err
		}
		if name == "use" {
			return p.command("ok", []string{""})
		}
		return p.fail(p.tickets[""], args[1:])
	case "apply":
		return p.apply(args)
	}
	return p.operator(name, args)
}

func (p *play) operator(name string, args []string) (string, error) {
	id, at := args[0], p.at()
	switch name {
	case "show":
		s, ok := p.book.State(id)
		if !ok {
			return id + ": no record", nil
		}
		return p.record(id, s), nil
	case "reset":
		was, es := p.book.Reset(at, id)
		return fmt.Sprintf("was %s; %s", was, p.events(es)), nil
	case "clear":
		found, es := p.book.Clear(at, id)
		return [...]string{"unchanged", "done", "skipped, terminal"}[found] + "; " + p.events(es), nil
	case "passed":
		return p.events(p.book.Passed(at, id)), nil
	case "forget":
		return p.events(p.book.Forget(at, id)), nil
	case "credentials", "recount":
		n, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return "", err
		}
		t := p.targets[id]
		key := "key-" + args[1]
		if name == "recount" {
			key = t.Connection.Secrets["api_key"].Reveal()
			if len(args) > 2 {
				key = args[2]
			}
		}
		next := *t.Connection
		next.CredentialRevision = n
		next.Secrets = map[string]catalog.Secret{"api_key": catalog.NewSecret(key)}
		t.Connection = &next
		p.targets[id] = t
		if len(args) > 2 && args[2] == "quiet" {
			return "not told", nil
		}
		return p.events(p.book.Renew(at, t.Connection)), nil
	}
	return "", fmt.Errorf("no command %q", name)
}

func (p *play) admit(ticket, id string, model []string) (string, error) {
	t, ok := p.targets[id]
	if !ok {
		return "", fmt.Errorf("no connection %q", id)
	}
	if len(model) > 0 {
		t.Model = model[0]
		if t.Model == "-" {
			t.Model = ""
		}
	}
	peeked := p.ladder.Peek(p.at(), t)
	tk, refusal := p.ladder.Admit(p.at(), t)
	if (peeked == nil) != (refusal == nil) {
		return "", fmt.Errorf("peek says %+v, admit %+v", peeked, refusal)
	}
	if refusal != nil {
		return "refused by " + p.refusal(refusal), nil
	}
	p.tickets[ticket] = tk
	return "admitted", nil
}

func (p *play) refusal(r *resilience.Refusal) string {
	wait := [...]string{"never", "transient", "quota"}[r.Wait]
	until := "no end"
	if !r.RetryAt.IsZero() {
		until = "until " + p.time(r.RetryAt.UnixMilli())
	}
	since := "unknown"
	if !r.Since.IsZero() {
		since = p.time(r.Since.UnixMilli())
	}
	return fmt.Sprintf("%s: %s, %s, wait %s, since %s", r.Gate, r.Reason, until, wait, since)
}

func verdict(r wire.Reason) wire.Verdict {
	return wire.Verdict{Reason: r, Scope: r.DefaultScope(), Fallback: r.DefaultFallback(), Plugin: "test", Rule: string(r)}
}

func (p *play) fail(tk resilience.Ticket, args []string) (string, error) {
	reason, ok := wire.ParseReason(args[0])
	if !ok {
		return "", fmt.Errorf("no reason %q", args[0])
	}
	o := resilience.Outcome{Verdict: verdict(reason)}
	for _, arg := range args[1:] {
		if err := option(&o, arg); err != nil {
			return "", err
		}
	}
	return p.events(p.ladder.Settle(p.at(), tk, o)), nil
}

func option(o *resilience.Outcome, arg string) (err error) {
	name, value, _ := strings.Cut(arg, "=")
	switch name {
	case "scope":
		o.Verdict.Scope = wire.Scope(value)
	case "hint":
		o.Verdict.Hinted, o.Verdict.HintSource = true, "header:retry-after"
		o.Verdict.RetryAfter, err = time.ParseDuration(value)
	case "cooldown":
		o.Verdict.Cooldown, err = time.ParseDuration(value)
	case "status":
		o.Cause.Status, err = strconv.Atoi(value)
	case "original":
		o.Cause.OriginalStatus, err = strconv.Atoi(value)
	case "message":
		o.Cause.Message = strings.ReplaceAll(value, "_", " ")
	case "terminal":
		o.Verdict.Terminal, o.Verdict.SetStatus = true, wire.TerminalState(value)
	case "exact":
		o.Verdict.Exact = true
	case "own-deadline":
		o.OwnDeadline = true
	case "request-scoped":
		o.Verdict.RequestScoped = true
	default:
		return fmt.Errorf("no option %q", arg)
	}
	return err
}

func (p *play) restart() (string, error) {
	all := map[string][]byte{}
	for _, g := range p.ladder.Gates() {
		b, err := g.Snapshot()
		if err != nil {
			return "", err
		}
		all[g.Name()] = b
	}
	p.rebuild()
	for _, g := range p.ladder.Gates() {
		if err := g.Restore(all[g.Name()]); err != nil {
			return "", err
		}
	}
	return "restarted", nil
}

func (p *play) replay() (string, error) {
	p.rebuild()
	for _, e := range p.journal {
		if err := p.ladder.Apply(e); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("replayed %d events", len(p.journal)), nil
}

func (p *play) apply(args []string) (string, error) {
	revision, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return "", err
	}
	data := strings.Join(args[3:], " ")
	e := store.Event{Kind: args[0], Key: args[1], Revision: revision, Data: []byte(data)}
	if err := p.ladder.Apply(e); err != nil {
		return "error: " + err.Error(), nil
	}
	return "applied", nil
}

// events notes what changed and prints it.
func (p *play) events(es []store.Event) string {
	if len(es) == 0 {
		return "nothing changed"
	}
	var out []string
	for _, e := range es {
		p.journal = append(p.journal, e)
		if !json.Valid(e.Data) {
			return "not JSON: " + string(e.Data)
		}
		s := p.book.Peek(e.Key)
		out = append(out, fmt.Sprintf("%s r%d %s", e.Kind, e.Revision, p.record(e.Key, *s)))
	}
	return strings.Join(out, "\n")
}

// record prints what a person would ask about first.
func (p *play) record(id string, s account.State) string {
	h := s.Health(p.now)
	line := fmt.Sprintf("%s: %s %s level=%d", id, h.Status, h.TestStatus, h.BackoffLevel)
	if s.Cooling(p.now.UnixMilli()) {
		line += fmt.Sprintf(" until=%s", p.time(s.Until))
	}
	if h.LastErrorType != nil {
		line += fmt.Sprintf(" error=%s at %s", *h.LastErrorType, p.time(s.LastErrorAt))
	}
	for _, r := range s.Rejected {
		line += fmt.Sprintf(" rejected[%s]=%d until %s", r.Model, r.Count, p.time(r.Until))
	}
	return line
}

// time prints Unix milliseconds as the time since the start of the script.
func (p *play) time(ms int64) string { return "+" + time.UnixMilli(ms).Sub(Start).String() }
