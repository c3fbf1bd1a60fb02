package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// fault is one fault of the wall.
type fault struct {
	id     string
	routes []route
	play   func(ctx context.Context, w *wall)
}

// route is a combo of two targets, a primary that fails and its fallback.
type route struct {
	name     string
	config   string     // of the combo, as members of YAML
	primary  func(*ask) // nil: good
	fallback func(*ask) // nil: good
	prefill  string     // what the entry of the fallback says of assistant_prefill; empty: true
	windows  [2]int     // context windows of the two models, in tokens; 0: not said
}

// wall is one fault in one dialect.
type wall struct {
	fault   *fault
	dialect *spoken
	up      *upstream
	gateway string
	key     string // of its management

	mu    sync.Mutex
	seen  []string // guarded by mu
	wrong []string // guarded by mu
}

func newWall(f *fault, d *spoken, up *upstream) *wall {
	w := &wall{fault: f, dialect: d, up: up}
	for _, r := range f.routes {
		up.set(w.name(r.name, "primary"), orGood(r.primary))
		up.set(w.name(r.name, "fallback"), orGood(r.fallback))
	}
	return w
}

func orGood(does func(*ask)) func(*ask) {
	if does == nil {
		return (*ask).good
	}
	return does
}

// name is that of a provider, or with an empty role of the combo.
func (w *wall) name(route, role string) string {
	return strings.Trim(strings.Join([]string{strings.ToLower(w.fault.id), w.dialect.short, route, role}, "-"), "-")
}

// configOf is the gateway's configuration file.
func configOf(walls []*wall, upstream string) string {
	var providers, connections, combos strings.Builder
	for _, w := range walls {
		for _, r := range w.fault.routes {
			for i, role := range []string{"primary", "fallback"} {
				name, prefill := w.name(r.name, role), "true"
				if role == "fallback" && r.prefill != "" {
					prefill = r.prefill
				}
				window := ""
				if r.windows[i] > 0 {
					window = fmt.Sprintf(", context_window: %d", r.windows[i])
				}
				fmt.Fprintf(&providers, "  - {id: %s, executor: %s, category: local, base_url: %s/%s/v1, assistant_prefill: %s, models: [{id: %s%s}]}\n",
					name, w.dialect.executor, upstream, name, prefill, name, window)
				fmt.Fprintf(&connections, "  - {id: %[1]s, provider: %[1]s, api_key: sk-%[1]s}\n", name)
			}
			fmt.Fprintf(&combos, "  - {id: %s, strategy: priority, targets: [{model: %[2]s/%[2]s}, {model: %[3]s/%[3]s}], config: {%s}}\n",
				w.name(r.name, ""), w.name(r.name, "primary"), w.name(r.name, "fallback"), r.config)
		}
	}
	return "providers:\n" + providers.String() + "connections:\n" + connections.String() + "combos:\n" + combos.String()
}

// play runs the fault.
func (w *wall) play(ctx context.Context) {
	w.fault.play(ctx, w)
	if ctx.Err() != nil {
		w.fail("the time of the wall was over")
	}
}

func (w *wall) ask(ctx context.Context, route string, stream bool) answer {
	return w.dialect.ask(ctx, w.gateway, w.name(route, ""), stream)
}

func (w *wall) hits(route, role string) []hit { return w.up.heard(w.name(route, role)) }

// see notes what was seen, for the card.
func (w *wall) see(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, fmt.Sprintf(format, args...))
}

// fail notes what was not right.
func (w *wall) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// want notes a failure unless there is none.
func (w *wall) want(what string, err error) {
	if err != nil {
		w.fail("%s: %v", what, err)
	}
}

// from wants the answer of one of the two.
func (w *wall) from(route, role string, a *answer) {
	if got := w.served(a); got != w.name(route, role) {
		w.fail("%s: answered by %q", strings.TrimSpace(route+" "+role), got)
	}
}

// served is the provider that answered, as the gateway's header says.
func (w *wall) served(a *answer) string { return a.header.Get("X-Weir-Provider") }

// said is what stands on the card.
func (w *wall) said() string {
	if len(w.wrong) > 0 {
		return strings.ReplaceAll(strings.Join(w.wrong, "; "), "\n", `\n`)
	}
	return strings.Join(w.seen, "; ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
