// Package gatetest plays histories on a ladder of gates: scripts of commands at given times, each answered by what a
// gate said or what changed. It is for tests of the gates only.
//
// A script is a file for datadriven. Its directives are
//
//	settings base=3s steps=5 hints=true max=30m            (of the category apikey; oauth-base=, oauth-hints=, ...)
//	settings opens=12 degrades=7 reset=30s ...             (see providerSetting)
//	connection a [provider=openai] [disable-cooling] [compatible] [per-model] [category=oauth] [egress-family=NAME] [egress=IP]
//	at 30s                                                 followed by lines, one command each:
//
//	admit T a [MODEL]        ask for an attempt; the ticket is called T
//	fail T REASON [...]      end T: scope= hint= cooldown= status= original= terminal[=STATE] exact own-deadline request-scoped
//	                         fault= sibling account local skip-breaker
//	ok T | ignore T | cancel T
//	try a REASON [...]       admit and fail in one step
//	use a [MODEL]            admit and succeed in one step
//	show a                   the record
//	reset a | clear a | passed a | forget a
//	credentials a N [quiet]  the connection gets new credentials, under revision N; quiet: nobody tells the gates
//	recount a N [KEY]        the process starts and counts revisions anew; KEY: the secret in the environment by now
//	                         text=WITH_UNDERSCORES narrow (as the host narrows a verdict, lockout.Narrow)
//	try, use, admit          also take model=MODEL, as=ALIAS and egress=IP
//	lockouts all | unlock a MODEL [everywhere] | unlock-connection a | unlock-all now | sweep now
//	request direct | request combo [pinned]       what asks from here on
//	repeat N 5s COMMAND ...                        N times, with that time between; the last answer is shown
//	breaker PROVIDER | breakers all | transitions PROVIDER
//	reset-breaker PROVIDER|all | passed-test PROVIDER | pending all
//	entries all | clear-entries PROVIDER|all       of the provider cooldown
//	restart                  go on from a snapshot
//	replay                   go on from the journal alone
//	apply KIND a REVISION JSON
package gatetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
		MaxCooldown:   30 * time.Minute,
		CooldownProbe: settings.CooldownProbe{Enabled: true, First: time.Minute, Max: time.Hour},
		ModelLockout: settings.ModelLockout{
			ErrorCodes: []int{403, 404, 429, 502, 503, 504}, Base: 2 * time.Minute, Max: 30 * time.Minute, MaxSteps: 10,
			Exponential: true, Persist: true, Zone: time.UTC,
		},
	}
}

// play is the world of one script.
type play struct {
	make     func(*account.Book, func() time.Time) []resilience.Gate
	values   *settings.Values
	targets  map[string]catalog.Target
	tickets  map[string]resilience.Ticket
	about    map[string]catalog.Target // of tickets
	aliases  map[string]string
	book     *account.Book
	ladder   *resilience.Ladder
	journal  []store.Event
	warnings []string
	now      time.Time
	combo    bool // what asks is a combo
	pinned   bool // and its target names the connection
}

// Run plays every script in testdata of the package under test, on the gates that make returns for a book.
func Run(t *testing.T, make func(*account.Book) []resilience.Gate) {
	RunAt(t, func(b *account.Book, _ func() time.Time) []resilience.Gate { return make(b) })
}

// RunAt is Run for gates that want the clock of the script.
func RunAt(t *testing.T, make func(*account.Book, func() time.Time) []resilience.Gate) {
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

func newPlay(gates func(*account.Book, func() time.Time) []resilience.Gate) *play {
	p := &play{
		make: gates, values: Defaults(), now: Start,
		targets: map[string]catalog.Target{}, tickets: map[string]resilience.Ticket{},
		about: map[string]catalog.Target{}, aliases: map[string]string{},
	}
	p.rebuild()
	return p
}

// rebuild starts with empty gates, as a new process does.
func (p *play) rebuild() {
	p.book = account.NewBook(func(w string) { p.warnings = append(p.warnings, w) })
	p.ladder = resilience.NewLadder(p.make(p.book, func() time.Time { return p.now })...)
}

func (p *play) at() resilience.Moment {
	s := &catalog.Snapshot{Settings: p.values, Aliases: p.aliases, Providers: p.providers()}
	return resilience.Moment{Now: p.now, Catalog: s, Combo: p.combo, Pinned: p.pinned}
}

// providers are those of the connections, with the connections as they are by now.
func (p *play) providers() (all []*catalog.Provider) {
	for _, id := range slices.Sorted(maps.Keys(p.targets)) {
		t := p.targets[id]
		if !slices.Contains(all, t.Provider) {
			all = append(all, t.Provider)
		}
		for i, c := range t.Provider.Connections {
			if c.ID == id {
				t.Provider.Connections[i] = t.Connection
			}
		}
	}
	return all
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
			known := false
			if known, err = modelSetting(&v, a.Key, a.Vals[0]); !known {
				err = providerSetting(&v, a.Key, a.Vals[0])
			}
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
		case "rate-limit-reset":
			d, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				return err
			}
			t.Connection.RateLimitReset = d
		case "oauth":
			t.Connection.AuthType = wire.AuthOAuth
		case "family":
			name, models, _ := strings.Cut(a.Vals[0], ":")
			t.Provider.Families = append(t.Provider.Families, catalog.QuotaFamily{Name: name, Models: strings.Split(models, "+")})
		case "egress-family":
			t.Provider.EgressFamily = a.Vals[0]
		case "egress":
			t.Connection.EgressIP = a.Vals[0]
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
		if strings.HasPrefix(e.Kind, "breaker.") {
			out = append(out, p.breakerEvent(e))
			continue
		}
		if strings.HasPrefix(e.Kind, "lockout.") {
			out = append(out, p.lockoutEvent(e))
			continue
		}
		s := p.book.Peek(e.Key)
		out = append(out, fmt.Sprintf("%s r%d %s", e.Kind, e.Revision, p.record(e.Key, *s)))
	}
	return strings.Join(out, "\n")
}

// record prints what a person would ask about first.
func (p *play) record(id string, s account.State) string {
	h := s.Health(p.now)
	var line strings.Builder
	fmt.Fprintf(&line, "%s: %s %s level=%d", id, h.Status, h.TestStatus, h.BackoffLevel)
	if s.Cooling(p.now.UnixMilli()) {
		fmt.Fprintf(&line, " until=%s", p.time(s.Until))
	}
	line.WriteString(p.times(s))
	if h.LastErrorType != nil {
		fmt.Fprintf(&line, " error=%s at %s", *h.LastErrorType, p.time(s.LastErrorAt))
	}
	if s.Cause != nil && s.Cause.ConnectionID != "" {
		fmt.Fprintf(&line, " because of %s", s.Cause.ConnectionID)
	}
	for _, r := range s.Rejected {
		fmt.Fprintf(&line, " rejected[%s]=%d until %s", r.Model, r.Count, p.time(r.Until))
	}
	return line.String()
}

// time prints Unix milliseconds as the time since the start of the script.
func (p *play) time(ms int64) string { return "+" + time.UnixMilli(ms).Sub(Start).String() }
