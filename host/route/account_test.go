package route_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
	"github.com/weirgate/weir/host/settings"
)

// bank is a provider with accounts a, b, c, ... and what chooses among them.
type bank struct {
	r    *route.Router
	p    *catalog.Provider
	snap *catalog.Snapshot
	w    *world
	key  *catalog.Key
	now  time.Time
}

func newBank(seed uint64, n int) *bank {
	b := &bank{r: route.NewRouter(seeded(seed)), p: &catalog.Provider{ID: "acme"}, now: now,
		snap: &catalog.Snapshot{Settings: &settings.Values{}}, w: &world{refused: map[string]bool{}, states: map[string]route.Condition{}}}
	for i := range n {
		b.p.Connections = append(b.p.Connections, &catalog.Connection{ID: string(rune('a' + i)), Provider: "acme", Active: true, Priority: 1})
	}
	return b
}

func (b *bank) choose(strategy string, draws bool) string {
	rt := &catalog.RouteTarget{Key: "acme/m", Provider: b.p, Model: "m"}
	var out strings.Builder
	for _, c := range b.r.Choose(nil, route.Choice{Target: rt, Key: b.key, Strategy: strategy, Catalog: b.snap, World: b.w, Now: b.now}, draws) {
		out.WriteString(c.ID)
	}
	return out.String()
}

// use is one request: the first connection serves it.
func (b *bank) use(strategy string) string {
	got := b.choose(strategy, true)
	for _, c := range b.p.Connections {
		if c.ID == got[:1] {
			b.r.Used(c, b.now)
		}
	}
	return got[:1]
}

// SEL-3, STR-14, CMB-7: whose word it is how a provider's connections are chosen.
func TestAccountStrategy(t *testing.T) {
	p := &catalog.Provider{ID: "Acme"}
	for i, c := range []struct {
		combo, general string
		own            map[string]string
		want           string
	}{
		{"", "", nil, "fill-first"},
		{"", "random", nil, "random"},
		{"", "random", map[string]string{"acme": "p2c"}, "p2c"},
		{"", "", map[string]string{"other": "p2c"}, "fill-first"},
		{"fill-first", "random", map[string]string{"acme": "p2c"}, "fill-first"},
		{"priority", "round-robin", nil, "round-robin"},
	} {
		s := &catalog.Snapshot{Settings: &settings.Values{FallbackStrategy: c.general, ProviderStrategies: c.own}}
		if got := route.AccountStrategy(&catalog.Route{Strategy: c.combo}, p, s); got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

func TestAccountFillFirst(t *testing.T) {
	b := newBank(1, 3)
	b.w.refused["a"] = true
	for range 3 {
		if got := b.choose(route.FillFirst, true); got != "abc" { // the ladder decides about a
			t.Error("SEL-4:", got)
		}
	}
}

func TestAccountRoundRobin(t *testing.T) {
	t.Run("SEL-4 three uses each, then the least recently used", func(t *testing.T) {
		b := newBank(1, 3)
		got := ""
		for range 12 {
			got += b.use("round-robin")
		}
		if got != "aaabbbcccaaa" {
			t.Error(got)
		}
	})
	t.Run("SEL-4 stickyRoundRobinLimit", func(t *testing.T) {
		b := newBank(1, 3)
		b.snap.Settings.StickyRoundRobinLimit = 1
		got := ""
		for range 6 {
			got += b.use("round-robin")
		}
		if got != "abcabc" {
			t.Error(got)
		}
	})
	t.Run("SEL-4 after a failure the least recently used", func(t *testing.T) {
		b := newBank(1, 3)
		b.use("round-robin")
		b.r.Failing(b.p.Connections[0])
		if got := b.use("round-robin"); got != "b" {
			t.Error(got)
		}
	})
	t.Run("SEL-4 lower backoff levels first", func(t *testing.T) {
		b := newBank(1, 3)
		b.w.states["a"], b.w.states["b"] = route.Condition{Backoff: 2}, route.Condition{Backoff: 1}
		if got := b.choose("round-robin", true); got != "cba" {
			t.Error(got)
		}
	})
	t.Run("SEL-1 one that is refused now is not stayed on", func(t *testing.T) {
		b := newBank(1, 3)
		b.use("round-robin")
		b.w.refused["a"] = true
		if got := b.choose("round-robin", true); got != "bca" {
			t.Error(got)
		}
	})
}

func TestAccountRandom(t *testing.T) {
	b := newBank(3, 3)
	seen := map[string]int{}
	for range 1200 {
		seen[b.choose("random", true)]++
	}
	if len(seen) != 6 || !near(seen["abc"], 200) {
		t.Error("SEL-4:", seen)
	}
	b.key = &catalog.Key{PreferredConnections: []string{"c", "b"}}
	for range 50 {
		if got := b.choose("random", true); got[2] != 'a' {
			t.Fatal("SEL-2: what the key prefers does not come first:", got)
		}
	}
	if got := b.choose("random", false); got != "bca" {
		t.Error("explained as", got)
	}
}

func TestAccountP2C(t *testing.T) {
	first := func(b *bank, n int) map[string]int {
		out := map[string]int{}
		for range n {
			out[b.choose("p2c", true)[:1]]++
		}
		return out
	}
	t.Run("SEL-6 each penalty decides", func(t *testing.T) {
		for name, worse := range map[string]func(b *bank){
			"an error":      func(b *bank) { b.w.states["a"] = route.Condition{Error: route.OtherTrouble} },
			"backoff":       func(b *bank) { b.w.states["a"] = route.Condition{Backoff: 1} },
			"uses in a row": func(b *bank) { b.r.Used(b.p.Connections[0], b.now.Add(-time.Hour)) },
			"priority":      func(b *bank) { b.p.Connections[0].Priority = 2 },
			"recency": func(b *bank) {
				b.r.Used(b.p.Connections[0], b.now.Add(-4*time.Minute))
				b.r.Used(b.p.Connections[0], b.now.Add(-4*time.Minute))
				b.r.Used(b.p.Connections[1], b.now.Add(-4*time.Minute))
				b.r.Used(b.p.Connections[1], b.now.Add(-6*time.Minute))
				b.r.Used(&catalog.Connection{ID: "x", Provider: "acme"}, b.now.Add(-time.Hour))
				b.r.Used(b.p.Connections[0], b.now.Add(-4*time.Minute))
				b.r.Used(b.p.Connections[1], b.now.Add(-6*time.Minute))
				b.r.Used(&catalog.Connection{ID: "x", Provider: "acme"}, b.now.Add(-time.Hour))
			},
		} {
			b := newBank(4, 2)
			if n := first(b, 20); n["a"] != 20 {
				t.Errorf("SEL-5: a tie of two goes to the priority, then the id: %v", n)
			}
			worse(b)
			if n := first(b, 20); n["b"] != 20 {
				t.Errorf("%s: %v", name, n)
			}
		}
	})
	t.Run("SEL-6 kinds of errors by their points", func(t *testing.T) {
		for _, c := range []struct{ a, b route.Condition }{ // a has more points
			{route.Condition{Error: route.LimitTrouble}, route.Condition{Error: route.AuthTrouble, Backoff: 0}},
			{route.Condition{Error: route.AuthTrouble}, route.Condition{Error: route.ServerTrouble}},
			{route.Condition{Error: route.ServerTrouble}, route.Condition{Error: route.OtherTrouble}},
			{route.Condition{Error: route.AuthTrouble}, route.Condition{Backoff: 2}},                 // 24 to 16
			{route.Condition{Backoff: 4}, route.Condition{Error: route.LimitTrouble}},                // 32 to 30
			{route.Condition{Backoff: 5, Error: route.OtherTrouble}, route.Condition{Backoff: 32}},   // 46 to the 40 that end it
			{route.Condition{}, route.Condition{Known: true, Headroom: 100}},                         // unknown headroom: 4 to 0
			{route.Condition{Known: true, Headroom: 60}, route.Condition{}},                          // 5 to 4
			{route.Condition{Known: true, Headroom: 25}, route.Condition{Known: true, Headroom: 26}}, // 13 to 9
			{route.Condition{Known: true, Headroom: 10}, route.Condition{Known: true, Headroom: 11}}, // 21 to 15
			{route.Condition{Known: true}, route.Condition{Error: route.LimitTrouble, Backoff: 5}},   // 200 to 74
		} {
			b := newBank(4, 2)
			b.w.states["a"], b.w.states["b"] = c.a, c.b
			if n := first(b, 5); n["b"] != 5 {
				t.Errorf("%+v: %v", c, n)
			}
		}
	})
	t.Run("SEL-5 two of many are drawn", func(t *testing.T) {
		b := newBank(5, 4)
		b.w.states["d"] = route.Condition{Backoff: 3}
		n := first(b, 1200)
		if n["d"] != 0 || n["a"] == 0 || n["b"] == 0 || n["c"] == 0 {
			t.Error(n)
		}
		b.w.refused["a"] = true
		if n := first(b, 200); n["a"] != 0 {
			t.Error("SEL-1: a refused one was drawn:", n)
		}
	})
}

// SEL-11 to SEL-13: the weight gives up to its points for latency and errors, from three samples of both on.
func TestLatencyPoints(t *testing.T) {
	choose := func(set func(b *bank)) string {
		b := newBank(6, 2)
		b.snap.Settings.P2CLatencyWeight = 10
		set(b)
		return b.choose("p2c", true)
	}
	sample := func(b *bank, id, model string, n int, first time.Duration, ok bool) {
		for range n {
			b.r.Samples.Add(id, model, b.now, first, ok)
		}
	}
	for name, c := range map[string]struct {
		set  func(b *bank)
		want string
	}{
		"SEL-11 slower": {func(b *bank) {
			sample(b, "a", "m", 3, 2*time.Second, true)
			sample(b, "b", "m", 3, time.Second, true)
		}, "ba"},
		"SEL-11 failing": {func(b *bank) {
			sample(b, "a", "m", 3, time.Second, false)
			sample(b, "b", "m", 3, time.Second, true)
		}, "ba"},
		"SEL-12 two samples are too few": {func(b *bank) {
			sample(b, "a", "m", 3, 9*time.Second, true)
			sample(b, "b", "m", 2, time.Second, true)
		}, "ab"},
		"SEL-12 those of the connection when the model has too few": {func(b *bank) {
			sample(b, "a", "x", 3, 9*time.Second, true)
			sample(b, "b", "y", 3, time.Second, true)
		}, "ba"},
		"SEL-12 those of the model before those of the connection": {func(b *bank) {
			sample(b, "a", "m", 3, time.Second, true)
			sample(b, "b", "m", 3, 2*time.Second, true)
			sample(b, "a", "x", 10, 30*time.Second, true)
		}, "ab"},
		"SEL-11 off": {func(b *bank) {
			b.snap.Settings.P2CLatencyWeight = 0
			sample(b, "a", "m", 3, 9*time.Second, true)
			sample(b, "b", "m", 3, time.Second, true)
		}, "ab"},
		"SEL-13 at most its half for latency": {func(b *bank) {
			sample(b, "a", "m", 3, time.Hour, true)
			sample(b, "b", "m", 3, time.Second, true)
			b.w.states["b"] = route.Condition{Error: route.OtherTrouble} // 6 to the 5 of latency
		}, "ab"},
		"SEL-10 old ones do not count": {func(b *bank) {
			sample(b, "a", "m", 3, 9*time.Second, true)
			sample(b, "b", "m", 3, time.Second, true)
			b.now = b.now.Add(15*time.Minute + time.Second)
		}, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choose(c.set); got != c.want {
				t.Error(got)
			}
		})
	}
}

// SEL-10: the last twenty, at most fifteen minutes old, by connection and by model of it.
func TestSamples(t *testing.T) {
	var s route.Samples
	for i := range 30 {
		s.Add("a", "m", now.Add(time.Duration(i)*time.Second), time.Duration(i)*time.Millisecond, i%2 == 0)
	}
	s.Add("a", "other", now.Add(time.Minute), time.Hour, true)
	got := s.Connection("a", "m", now.Add(time.Minute))
	if got.N != 20 || got.ErrorRate != 0.5 || got.FirstByte != 19*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if got := s.Connection("a", "", now.Add(time.Minute)); got.N != 20 || got.FirstByte < time.Minute {
		t.Errorf("of the connection: %+v", got)
	}
	if got := s.Connection("a", "m", now.Add(15*time.Minute+19*time.Second)); got.N != 11 {
		t.Errorf("%+v", got)
	}
	for i := range 20_000 { // names of models come from clients
		s.Add("a", fmt.Sprint(i), now, time.Second, true)
	}
	if got := s.Connection("a", "19999", now); got.N != 1 {
		t.Errorf("%+v", got)
	}
}
