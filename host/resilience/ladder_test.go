package resilience_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

var world = &catalog.Snapshot{Settings: gatetest.Defaults()}

func at(d time.Duration) resilience.Moment {
	return resilience.Moment{Now: gatetest.Start.Add(d), Catalog: world}
}

func target(id string) catalog.Target {
	return catalog.Target{
		Provider:   &catalog.Provider{ID: "openai", Category: catalog.APIKey},
		Connection: &catalog.Connection{ID: id, Provider: "openai", Active: true, CredentialRevision: 1},
		Model:      "gpt-5",
	}
}

// turnstile is a gate that counts what it gave out and can be shut. Its permits are numbered, and each may end once.
type turnstile struct {
	name string
	shut atomic.Bool
	last atomic.Uint64
	open sync.Map // of permits that are out
	log  *[]string
	t    interface{ Errorf(string, ...any) }
}

func (g *turnstile) Name() string { return g.name }

func (g *turnstile) Admit(resilience.Moment, catalog.Target) (resilience.Permit, *resilience.Refusal) {
	g.note("admit")
	if g.shut.Load() {
		return resilience.Permit{}, &resilience.Refusal{Gate: g.name}
	}
	n := g.last.Add(1)
	g.open.Store(n, true)
	return resilience.Permit{Generation: n}, nil
}

func (g *turnstile) Peek(resilience.Moment, catalog.Target) *resilience.Refusal {
	g.note("peek")
	if g.shut.Load() {
		return &resilience.Refusal{Gate: g.name}
	}
	return nil
}

func (g *turnstile) Cancel(_ resilience.Moment, _ catalog.Target, p resilience.Permit) {
	g.note("cancel")
	g.end(p)
}

func (g *turnstile) Settle(_ resilience.Moment, t catalog.Target, p resilience.Permit, _ resilience.Outcome) []store.Event {
	g.note("settle")
	g.end(p)
	return []store.Event{{Kind: g.name, Key: t.Connection.ID}}
}

func (g *turnstile) end(p resilience.Permit) {
	if _, out := g.open.LoadAndDelete(p.Generation); !out {
		g.t.Errorf("gate %s: permit %d ended although it was not out", g.name, p.Generation)
	}
}

func (g *turnstile) Apply(e store.Event) error {
	if e.Kind == g.name && e.Data == nil {
		return fmt.Errorf("no data")
	}
	return nil
}

func (g *turnstile) Snapshot() ([]byte, error) { return nil, nil }

func (g *turnstile) Restore([]byte) error { return nil }

func (g *turnstile) note(what string) {
	if g.log != nil {
		*g.log = append(*g.log, what+" "+g.name)
	}
}

func (g *turnstile) out() (n int) {
	g.open.Range(func(any, any) bool { n++; return true })
	return n
}

// TestLadder proves OV-1: one order, all gates or none.
func TestLadder(t *testing.T) {
	var log []string
	gates := []*turnstile{{name: "a", log: &log, t: t}, {name: "b", log: &log, t: t}, {name: "c", log: &log, t: t}}
	l := resilience.NewLadder(gates[0], gates[1], gates[2])
	steps := []struct {
		name string
		do   func()
		want []string
	}{
		{"OV-1 settle in the order of the gates", func() {
			tk, _ := l.Admit(at(0), target("x"))
			if es := l.Settle(at(0), tk, resilience.Outcome{}); len(es) != 3 || es[0].Kind != "a" || es[2].Kind != "c" {
				t.Errorf("events %v", es)
			}
		}, []string{"admit a", "admit b", "admit c", "settle a", "settle b", "settle c"}},
		{"cancel, the last first", func() {
			tk, _ := l.Admit(at(0), target("x"))
			l.Cancel(at(0), tk)
		}, []string{"admit a", "admit b", "admit c", "cancel c", "cancel b", "cancel a"}},
		{"OV-1 a refusal gives back what was given, later gates are not asked", func() {
			gates[2].shut.Store(true)
			defer gates[2].shut.Store(false)
			tk, refusal := l.Admit(at(0), target("x"))
			if refusal == nil || refusal.Gate != "c" {
				t.Errorf("refusal %+v", refusal)
			}
			if es := l.Settle(at(0), tk, resilience.Outcome{}); es != nil {
				t.Errorf("a refused ticket settled: %v", es)
			}
		}, []string{"admit a", "admit b", "admit c", "cancel b", "cancel a"}},
		{"OBJ-25 peek changes nothing", func() {
			gates[1].shut.Store(true)
			defer gates[1].shut.Store(false)
			if refusal := l.Peek(at(0), target("x")); refusal == nil || refusal.Gate != "b" {
				t.Errorf("refusal %+v", refusal)
			}
		}, []string{"peek a", "peek b"}},
		{"OV-3 once only", func() {
			tk, _ := l.Admit(at(0), target("x"))
			l.Settle(at(0), tk, resilience.Outcome{})
			if es := l.Settle(at(0), tk, resilience.Outcome{}); es != nil {
				t.Errorf("second settle: %v", es)
			}
			l.Cancel(at(0), tk)
			l.Settle(at(0), resilience.Ticket{}, resilience.Outcome{})
		}, []string{"admit a", "admit b", "admit c", "settle a", "settle b", "settle c"}},
	}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			log = nil
			s.do()
			if diff := cmp.Diff(s.want, log); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			for _, g := range gates {
				if n := g.out(); n != 0 {
					t.Errorf("gate %s: %d permits are still out", g.name, n)
				}
			}
		})
	}
}

// TestLadderApply: an event goes to every gate, and the gate that could not take it is named.
func TestLadderApply(t *testing.T) {
	l := resilience.NewLadder(&turnstile{name: "a", t: t}, &turnstile{name: "b", t: t})
	if err := l.Apply(store.Event{Kind: "b", Data: []byte("{}")}); err != nil {
		t.Error(err)
	}
	if err := l.Apply(store.Event{Kind: "b", Seq: 7}); err == nil || err.Error() != "gate b: event 7 (b): no data" {
		t.Errorf("error %v", err)
	}
	if names := l.Gates(); len(names) != 2 || names[0].Name() != "a" {
		t.Errorf("gates %v", names)
	}
}

// TestPermitsEndOnce: in any history, every permit is settled or cancelled exactly once, also when tickets are copied and
// ended again (OV-3).
func TestPermitsEndOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gates := []*turnstile{{name: "a", t: rt}, {name: "b", t: rt}}
		l := resilience.NewLadder(gates[0], gates[1])
		var open, ended []resilience.Ticket
		take := func(rt *rapid.T) resilience.Ticket {
			if len(open) == 0 {
				rt.Skip()
			}
			i := rapid.IntRange(0, len(open)-1).Draw(rt, "ticket")
			tk := open[i]
			open = slices.Delete(open, i, i+1)
			ended = append(ended, tk)
			return tk
		}
		rt.Repeat(map[string]func(*rapid.T){
			"admit": func(rt *rapid.T) {
				for _, g := range gates {
					g.shut.Store(rapid.IntRange(0, 3).Draw(rt, "shut") == 0)
				}
				if tk, refusal := l.Admit(at(0), target("x")); refusal == nil {
					open = append(open, tk)
				}
			},
			"settle": func(rt *rapid.T) { l.Settle(at(0), take(rt), resilience.Outcome{}) },
			"cancel": func(rt *rapid.T) { l.Cancel(at(0), take(rt)) },
			"again": func(rt *rapid.T) {
				for _, tk := range ended {
					if es := l.Settle(at(0), tk, resilience.Outcome{}); es != nil {
						rt.Fatalf("an ended ticket settled: %v", es)
					}
					l.Cancel(at(0), tk)
				}
			},
			"": func(rt *rapid.T) {
				for _, g := range gates {
					if g.out() != len(open) {
						rt.Fatalf("gate %s: %d permits out for %d tickets", g.name, g.out(), len(open))
					}
				}
			},
		})
	})
}

// TestHammer drives the real gates from many goroutines; each ticket is ended by two of them at once (OV-3), and one
// burst of failures is one step (COOL-16).
func TestHammer(t *testing.T) {
	book := account.NewBook(nil)
	counter := &turnstile{name: "counter", t: t}
	breakers := breaker.New(nil)
	windows := window.New(breakers.IsOpen)
	l := resilience.NewLadder(counter, breakers, windows, terminal.New(book), cooldown.New(book), lockout.New(book, breakers.IsOpen))
	var wg sync.WaitGroup
	var stepped atomic.Int64
	var tickets []resilience.Ticket
	for range 64 {
		tk, refusal := l.Admit(at(0), target("x"))
		if refusal != nil {
			t.Fatal(refusal)
		}
		tickets = append(tickets, tk)
	}
	for _, tk := range tickets {
		for range 2 {
			wg.Go(func() {
				es := l.Settle(at(time.Second), tk, resilience.Outcome{Verdict: wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeProvider}})
				stepped.Add(int64(len(es)))
			})
		}
	}
	wg.Wait()
	s, _ := book.State("x")
	if s.Level != 1 || s.Revision != 1 || s.Remaining(at(time.Second).Now) != 3*time.Second {
		t.Errorf("after 64 failures at once: %+v", s)
	}
	if n := stepped.Load(); n != 64+1 { // one event of the counter for each ticket, one cooldown
		t.Errorf("%d events", n)
	}
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				tt := target(fmt.Sprint("c", (n+i)%5))
				tk, refusal := l.Admit(at(time.Duration(n)*time.Second), tt)
				if refusal != nil {
					book.Reset(at(0), tt.Connection.ID)
					breakers.Reset(at(0), tt.Provider.ID)
					continue
				}
				o := resilience.Outcome{OK: n%3 == 0, Verdict: wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, Terminal: n%50 == 1, SetStatus: wire.Banned}}
				if n%3 == 1 {
					o.Verdict, o.Cause = wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeProvider, Fallback: true}, resilience.Cause{Status: 503}
				}
				for _, e := range l.Settle(at(time.Duration(n)*time.Second), tk, o) {
					if err := l.Apply(e); e.Kind != "counter" && err != nil {
						t.Error(err)
					}
				}
				if n%20 == 0 {
					for _, g := range l.Gates()[1:] {
						if _, err := g.Snapshot(); err != nil {
							t.Error(err)
						}
					}
					breakers.All(at(0))
					breakers.Pending(at(time.Duration(n) * time.Second))
					windows.Sweep(at(time.Duration(n) * time.Minute))
				}
			}
		})
	}
	wg.Wait()
	if n := counter.out(); n != 0 {
		t.Errorf("%d permits are still out", n)
	}
}

// TestPassAllocatesNothing: an attempt that succeeds while nothing is wrong is on the path of every request.
func TestPassAllocatesNothing(t *testing.T) {
	l, tt := resting()
	o := resilience.Outcome{OK: true}
	n := testing.AllocsPerRun(200, func() {
		tk, refusal := l.Admit(at(time.Minute), tt)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if es := l.Settle(at(time.Minute), tk, o); es != nil {
			t.Fatal(es)
		}
	})
	if n >= 1 { // the pool of tickets may be emptied by the collector
		t.Errorf("%v allocations an attempt", n)
	}
}

// resting is the ladder of the host with the state of a hundred connections and of twenty providers, and a target among
// them with nothing set.
func resting() (*resilience.Ladder, catalog.Target) {
	book := account.NewBook(nil)
	breakers := breaker.New(nil)
	lockouts := lockout.New(book, breakers.IsOpen)
	l := resilience.NewLadder(breakers, window.New(breakers.IsOpen), terminal.New(book), cooldown.New(book), lockouts)
	for i := range 100 {
		tt := target(fmt.Sprint("c", i))
		tt.Provider = &catalog.Provider{ID: fmt.Sprint("p", i%20), Category: catalog.APIKey}
		for _, scope := range []wire.Scope{wire.ScopeModel, wire.ScopeProvider} {
			tk, _ := l.Admit(at(0), tt)
			l.Settle(at(0), tk, resilience.Outcome{Verdict: wire.Verdict{Reason: wire.ServerError, Scope: scope}, Cause: resilience.Cause{Status: 503}})
		}
	}
	tt := target("c7")
	tt.Provider = &catalog.Provider{ID: "p7", Category: catalog.APIKey}
	book.Reset(at(0), "c7")
	breakers.Reset(at(0), "p7")
	lockouts.ClearConnection(at(0), "c7")
	return l, tt
}

// BenchmarkLadderPass is an attempt that succeeds while nothing is wrong with its target: admitted and settled by all gates,
// as a combo's target, with the provider cooldown off and on.
func BenchmarkLadderPass(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("provider-cooldown=%v", on), func(b *testing.B) {
			l, tt := resting()
			v := *gatetest.Defaults()
			v.ProviderCooldown.Enabled = on
			moment := at(time.Minute)
			moment.Catalog, moment.Combo, moment.Pinned = &catalog.Snapshot{Settings: &v}, true, true
			b.ReportAllocs()
			for b.Loop() {
				tk, refusal := l.Admit(moment, tt)
				if refusal != nil {
					b.Fatal(refusal)
				}
				l.Settle(moment, tk, resilience.Outcome{OK: true})
			}
		})
	}
}
