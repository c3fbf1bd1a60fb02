package route_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
)

// dice are seeded, and count what is drawn.
type dice struct {
	mu    sync.Mutex
	r     *rand.Rand
	drawn int
}

func seeded(n uint64) *dice { return &dice{r: rand.New(rand.NewPCG(n, n))} }

func (d *dice) IntN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawn++
	return d.r.IntN(n)
}

func (d *dice) Float64() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawn++
	return d.r.Float64()
}

// world is what strategies are told.
type world struct {
	blocked  map[string]bool // by execution key
	circuits map[string]route.Circuit
	refused  map[string]bool // by connection
	states   map[string]route.Condition
}

func (w *world) Blocked(t *catalog.RouteTarget) bool { return w.blocked[t.Key] }
func (w *world) Circuit(p *catalog.Provider) route.Circuit {
	return w.circuits[p.ID]
}
func (w *world) Refused(_ *catalog.RouteTarget, c *catalog.Connection) bool { return w.refused[c.ID] }
func (w *world) Condition(c *catalog.Connection) route.Condition            { return w.states[c.ID] }

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// targets makes a combo of targets a, b, c, ... each on a provider of its own with one connection of the same name.
func targets(strategy string, n int) *catalog.Route {
	rt := &catalog.Route{Kind: catalog.KindCombo, Name: "best", Strategy: strategy, Mark: 1}
	for i := range n {
		id := string(rune('a' + i))
		p := &catalog.Provider{ID: id, Connections: []*catalog.Connection{{ID: id, Provider: id, Active: true}}}
		rt.Targets = append(rt.Targets, catalog.RouteTarget{Key: id + "/m", Provider: p, Model: "m", Weight: 1})
	}
	return rt
}

func order(s route.Sequence) string {
	var out strings.Builder
	for i := range s.Len() {
		out.WriteString(s.At(i).Provider.ID)
	}
	return out.String()
}

// count draws n orders and counts how often each target comes first.
func count(r *route.Router, rt *catalog.Route, w *world, n int) map[string]int {
	out := map[string]int{}
	for range n {
		out[r.Order(rt, w, now).At(0).Provider.ID]++
	}
	return out
}

func near(got, want int) bool { return got > want*8/10 && got < want*12/10 }

func TestStrategyNamesAreTheCatalogs(t *testing.T) { // STR-30
	if diff := cmp.Diff(catalog.ImplementedStrategies(), route.Strategies()); diff != "" {
		t.Error(diff)
	}
}

// STR-1, STR-2: whatever the strategy and its history, an order holds every target once; a preview draws nothing and moves nothing.
func TestOrdersAreComplete(t *testing.T) {
	for _, strategy := range append(route.Strategies(), "no-such-strategy") {
		t.Run("STR-1 "+strategy, rapid.MakeCheck(func(t *rapid.T) {
			d := seeded(rapid.Uint64().Draw(t, "seed"))
			r := route.NewRouter(d)
			rt := targets(strategy, rapid.IntRange(1, 6).Draw(t, "targets"))
			for i := range rt.Targets {
				rt.Targets[i].Weight = rapid.Float64Range(0, 3).Draw(t, "weight")
			}
			limit := rapid.IntRange(1, 3).Draw(t, "sticky")
			rt.Config.StickyWeighted, rt.Config.StickyRoundRobin = &limit, &limit
			w := &world{blocked: map[string]bool{}, circuits: map[string]route.Circuit{}}
			for range rapid.IntRange(1, 20).Draw(t, "requests") {
				for i := range rt.Targets {
					w.blocked[rt.Targets[i].Key] = rapid.Bool().Draw(t, "blocked")
				}
				drawn := d.drawn
				seen := order(r.Preview(rt, w, now))
				if again := order(r.Preview(rt, w, now)); seen != again || d.drawn != drawn {
					t.Fatalf("a preview moved something: %s, then %s; %d drawn", seen, again, d.drawn-drawn)
				}
				got := order(r.Order(rt, w, now))
				for _, s := range []string{seen, got} {
					if len(s) != len(rt.Targets) {
						t.Fatalf("%d targets give %q", len(rt.Targets), s)
					}
					for i := range rt.Targets {
						if strings.Count(s, rt.Targets[i].Provider.ID) != 1 {
							t.Fatalf("%s holds %s not once", s, rt.Targets[i].Provider.ID)
						}
					}
				}
				if rapid.Bool().Draw(t, "answered") {
					one := &rt.Targets[rapid.IntRange(0, len(rt.Targets)-1).Draw(t, "who")]
					r.Dispatched(rt, one)
					r.Succeeded(rt, one, one.Provider.ID)
				} else {
					r.Failed(rt)
				}
			}
		}))
	}
}

func TestConfiguredOrder(t *testing.T) {
	r, w := route.NewRouter(seeded(1)), &world{}
	for _, strategy := range []string{"priority", "fill-first", "", "no-such-strategy"} {
		t.Run("STR-10 STR-14 STR-6 "+strategy, func(t *testing.T) {
			rt := targets(strategy, 3)
			for range 3 {
				if got := order(r.Order(rt, w, now)); got != "abc" {
					t.Error(got)
				}
				r.Dispatched(rt, &rt.Targets[1])
				r.Succeeded(rt, &rt.Targets[1], "b")
			}
		})
	}
}

func TestWeighted(t *testing.T) {
	t.Run("STR-11 by weight, the rest descending", func(t *testing.T) {
		r, rt := route.NewRouter(seeded(2)), targets("weighted", 3)
		rt.Targets[0].Weight, rt.Targets[1].Weight, rt.Targets[2].Weight = 1, 3, 6
		n := count(r, rt, &world{}, 2000)
		if !near(n["a"], 200) || !near(n["b"], 600) || !near(n["c"], 1200) {
			t.Error(n)
		}
		for range 50 {
			if got := order(r.Order(rt, &world{}, now)); got != "cba" && got != "bca" && got != "acb" {
				t.Fatal(got)
			}
		}
		if got := order(r.Preview(rt, &world{}, now)); got != "cba" {
			t.Error(got)
		}
	})
	t.Run("STR-11 weights of 0 are uniform", func(t *testing.T) {
		r, rt := route.NewRouter(seeded(3)), targets("weighted", 2)
		rt.Targets[0].Weight, rt.Targets[1].Weight = 0, 0
		if n := count(r, rt, &world{}, 1000); !near(n["a"], 500) {
			t.Error(n)
		}
		rt.Targets[1].Weight = 1
		if n := count(r, rt, &world{}, 100); n["a"] != 0 {
			t.Error("a target without weight was drawn beside one with:", n)
		}
	})
	t.Run("STR-11 excluded ones are not drawn", func(t *testing.T) {
		r, rt := route.NewRouter(seeded(4)), targets("weighted", 3)
		w := &world{blocked: map[string]bool{"b/m": true}}
		if n := count(r, rt, w, 300); n["b"] != 0 || !near(n["a"], 150) {
			t.Error(n)
		}
		if got := order(r.Order(rt, w, now)); got[2] != 'b' {
			t.Error("it is not last:", got)
		}
	})
	t.Run("STR-11 sticky for its successes", func(t *testing.T) {
		r, rt := route.NewRouter(seeded(5)), targets("weighted", 3)
		limit := 4
		rt.Config.StickyWeighted = &limit
		r.Succeeded(rt, &rt.Targets[1], "b")
		for range 3 {
			if n := count(r, rt, &world{}, 20); n["b"] != 20 {
				t.Fatal(n)
			}
			r.Succeeded(rt, &rt.Targets[1], "b")
		}
		if n := count(r, rt, &world{}, 60); n["b"] == 60 {
			t.Error("it sticks after four successes")
		}
		r.Succeeded(rt, &rt.Targets[2], "c")
		if n := count(r, rt, &world{blocked: map[string]bool{"c/m": true}}, 20); n["c"] != 0 {
			t.Error("a blocked one sticks:", n)
		}
	})
}

func TestRoundRobin(t *testing.T) {
	t.Run("STR-12 the counter moves at selection", func(t *testing.T) {
		r, rt := route.NewRouter(nil), targets("round-robin", 3)
		for _, want := range []string{"abc", "bca", "cab", "abc"} {
			if got := order(r.Order(rt, &world{}, now)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	t.Run("STR-12 sticky: the same one serves its successes", func(t *testing.T) {
		r, rt := route.NewRouter(nil), targets("round-robin", 3)
		limit := 2
		rt.Config.StickyRoundRobin = &limit
		for _, want := range []string{"abc", "abc", "bca", "bca", "cab", "cab", "abc"} {
			if got := order(r.Order(rt, &world{}, now)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if got := order(r.Order(rt, &world{}, now)); got != want {
				t.Errorf("a selection without a success moved the counter: %s", got)
			}
			at := r.Order(rt, &world{}, now).At(0)
			r.Succeeded(rt, at, at.Provider.ID)
		}
	})
}

func TestP2C(t *testing.T) {
	add := func(r *route.Router, id string, n int, first time.Duration, ok bool) {
		for range n {
			r.Samples.Add(id, "m", now, first, ok)
		}
	}
	t.Run("STR-15 the better of two", func(t *testing.T) {
		r, rt := route.NewRouter(seeded(6)), targets("p2c", 3)
		add(r, "a", 10, time.Second, true)
		add(r, "b", 10, 10*time.Millisecond, true) // quicker
		add(r, "c", 10, time.Second, false)        // always fails
		n := count(r, rt, &world{}, 900)
		if n["c"] != 0 || !near(n["b"], 600) || !near(n["a"], 300) {
			t.Error(n)
		}
		if got := order(r.Preview(rt, &world{}, now)); got != "bac" {
			t.Error(got)
		}
		for range 30 {
			if got := order(r.Order(rt, &world{}, now)); got != "bac" && got != "abc" {
				t.Fatal("the rest is not in configured order:", got)
			}
		}
	})
	t.Run("STR-15 breakers", func(t *testing.T) {
		r, rt := route.NewRouter(seeded(7)), targets("p2c", 2)
		if n := count(r, rt, &world{circuits: map[string]route.Circuit{"a": route.Open}}, 50); n["a"] != 0 {
			t.Error("open:", n)
		}
		if n := count(r, rt, &world{circuits: map[string]route.Circuit{"a": route.HalfOpen}}, 50); n["a"] != 0 {
			t.Error("half-open:", n)
		}
	})
	t.Run("STR-15 STR-4 unknown is neutral, and a tie goes to the first drawn", func(t *testing.T) {
		r, rt := route.NewRouter(seeded(8)), targets("p2c", 2)
		if n := count(r, rt, &world{}, 1000); !near(n["a"], 500) {
			t.Error(n)
		}
		add(r, "a", 5, time.Second, false)
		if n := count(r, rt, &world{}, 50); n["a"] != 0 {
			t.Error("one that fails is not behind one that is unknown:", n)
		}
	})
}

func TestRandom(t *testing.T) {
	t.Run("STR-16 all orders alike", func(t *testing.T) {
		r, rt, seen := route.NewRouter(seeded(9)), targets("random", 3), map[string]int{}
		for range 1200 {
			seen[order(r.Order(rt, &world{}, now))]++
		}
		if len(seen) != 6 {
			t.Error(seen)
		}
		for o, n := range seen {
			if !near(n, 200) {
				t.Errorf("%s: %d", o, n)
			}
		}
	})
	t.Run("STR-23 a deck", rapid.MakeCheck(func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "targets")
		r, rt := route.NewRouter(seeded(rapid.Uint64().Draw(t, "seed"))), targets("strict-random", n)
		last := ""
		for range 4 {
			dealt := map[string]bool{}
			for range n {
				card := r.Order(rt, &world{}, now).At(0).Provider.ID
				if dealt[card] || card == last {
					t.Fatalf("%s came again; last %s", card, last)
				}
				dealt[card], last = true, card
			}
		}
	}))
}

func TestLeastUsed(t *testing.T) {
	r, rt := route.NewRouter(nil), targets("least-used", 3)
	// STR-17: two targets of one model on two accounts count apart. STR-3: ties keep the configured order.
	rt.Targets[1].Key, rt.Targets[2].Key = "b/m@1", "b/m@2"
	for _, want := range []string{"abc", "bca", "cab", "abc", "bca"} {
		got := r.Order(rt, &world{}, now)
		if order(got) != want {
			t.Errorf("STR-17: %s, want %s", order(got), want)
		}
		r.Dispatched(rt, got.At(0))
	}
}

func TestLastKnownGood(t *testing.T) {
	r, rt := route.NewRouter(nil), targets("lkgp", 3)
	if got := order(r.Order(rt, &world{}, now)); got != "abc" {
		t.Error("STR-25: no record:", got)
	}
	r.Succeeded(rt, &rt.Targets[2], "c")
	if got := order(r.Order(rt, &world{}, now)); got != "cab" {
		t.Error("STR-25: the provider that answered last:", got)
	}
	// The same provider pinned to two accounts: the account decides.
	pinned := targets("lkgp", 1)
	p := pinned.Targets[0].Provider
	p.Connections = []*catalog.Connection{{ID: "x", Provider: "a", Active: true}, {ID: "y", Provider: "a", Active: true}}
	pinned.Targets = []catalog.RouteTarget{
		{Key: "a/m@x", Provider: p, Model: "m", Connection: p.Connections[0]}, {Key: "a/m@y", Provider: p, Model: "m", Connection: p.Connections[1]},
	}
	pinned.Name = "pinned"
	r.Succeeded(pinned, &pinned.Targets[1], "y")
	if got := r.Order(pinned, &world{}, now).At(0).Connection.ID; got != "y" {
		t.Error("STR-25: the connection:", got)
	}
	r.Failed(rt)
	r.Failed(rt)
	if got := order(r.Order(rt, &world{}, now)); got != "cab" {
		t.Error("CMB-54: forgotten after two failures:", got)
	}
	r.Failed(rt)
	if got := order(r.Order(rt, &world{}, now)); got != "abc" {
		t.Error("CMB-54: remembered after three failures:", got)
	}
}

// STR-2: state is per combo name, begins anew when the combo changes, and the oldest of 500 gives way.
func TestMemories(t *testing.T) {
	r := route.NewRouter(nil)
	next := func(name string, mark uint64) string {
		rt := targets("round-robin", 3)
		rt.Name, rt.Mark = name, mark
		return order(r.Order(rt, &world{}, now))
	}
	if got := next("x", 1) + next("x", 1) + next("y", 1) + next("x", 2) + next("x", 2); got != "abcbcaabcabcbca" {
		t.Error(got)
	}
	for i := range 499 {
		next(fmt.Sprint("more", i), 1)
	}
	if got := next("y", 1); got != "abc" {
		t.Error("the oldest memory is still there:", got)
	}
	if got := next("more498", 1); got != "bca" {
		t.Error("a young memory is gone:", got)
	}
}

// STR-2: everything may be called at once.
func TestAtOnce(t *testing.T) {
	r := route.NewRouter(nil)
	var all sync.WaitGroup
	for i, strategy := range route.Strategies() {
		for range 2 {
			all.Go(func() {
				rt := targets(strategy, 4)
				rt.Name = fmt.Sprint(i)
				for j := range 200 {
					got := r.Order(rt, &world{}, now)
					r.Preview(rt, &world{}, now)
					r.Dispatched(rt, got.At(0))
					r.Samples.Add("a", "m", now, time.Second, j%2 == 0)
					r.Succeeded(rt, got.At(0), "a")
					r.Failed(rt)
				}
			})
		}
	}
	all.Wait()
}

// BenchmarkOrder: what each strategy costs a request for a combo of eight targets.
func BenchmarkOrder(b *testing.B) {
	for _, strategy := range route.Strategies() {
		b.Run(strategy, func(b *testing.B) {
			r, rt, w := route.NewRouter(nil), targets(strategy, 8), &world{}
			b.ReportAllocs()
			for b.Loop() {
				if s := r.Order(rt, w, now); s.Len() != 8 {
					b.Fatal(s.Len())
				}
			}
		})
	}
}
