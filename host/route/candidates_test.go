package route_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/route"
)

// pool is a provider whose connections are in the order that the catalog gives them: by priority, then id (SEL-4).
func pool() *catalog.Provider {
	p := &catalog.Provider{ID: "openai"}
	for _, id := range []string{"a", "b", "c", "d"} {
		p.Connections = append(p.Connections, &catalog.Connection{ID: id, Provider: "openai", Active: true})
	}
	return p
}

func TestCandidates(t *testing.T) {
	cases := []struct {
		name   string
		change func(p *catalog.Provider, t *catalog.RouteTarget)
		key    *catalog.Key
		want   []string
	}{
		{"SEL-4 fill-first", nil, nil, []string{"a", "b", "c", "d"}},
		{"a key without lists", nil, &catalog.Key{}, []string{"a", "b", "c", "d"}},
		{"SEL-1 only what the key allows", nil, &catalog.Key{AllowedConnections: []string{"d", "b"}}, []string{"b", "d"}},
		{"SEL-2 preferred first, in their own order", nil, &catalog.Key{PreferredConnections: []string{"d", "c"}}, []string{"c", "d", "a", "b"}},
		{
			"SEL-2 preference grants no access", nil,
			&catalog.Key{PreferredConnections: []string{"d"}, AllowedConnections: []string{"a"}},
			[]string{"a"},
		},
		{"CMB-1 pinned", func(p *catalog.Provider, rt *catalog.RouteTarget) { rt.Connection = p.Connections[2] }, nil, []string{"c"}},
		{
			"CMB-6 pinned to what the key does not allow",
			func(p *catalog.Provider, rt *catalog.RouteTarget) { rt.Connection = p.Connections[2] },
			&catalog.Key{AllowedConnections: []string{"a"}},
			nil,
		},
		{"CMB-1 the target's own list", func(_ *catalog.Provider, rt *catalog.RouteTarget) { rt.Allowed = []string{"b", "a"} }, nil, []string{"a", "b"}},
		{"SEL-1 excluded models", func(p *catalog.Provider, _ *catalog.RouteTarget) {
			p.Connections[0].ExcludedModels = []string{"gpt-5"}
			p.Connections[1].ExcludedModels = []string{"gpt-5-*"}
		}, nil, []string{"b", "c", "d"}},
		{"SEL-1 the connection's own models", func(p *catalog.Provider, _ *catalog.RouteTarget) {
			p.Connections[0].Models = []string{"gpt-5-mini"}
			p.Connections[3].Models = []string{"o*", "gpt-*"}
		}, nil, []string{"b", "c", "d"}},
		{"SEL-1 active ones", func(p *catalog.Provider, _ *catalog.RouteTarget) { p.Connections[1].Active = false }, nil, []string{"a", "c", "d"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := pool()
			rt := catalog.RouteTarget{Provider: p, Model: "gpt-5"}
			if c.change != nil {
				c.change(p, &rt)
			}
			var got []string
			for conn := range route.Candidates(&rt, c.key) {
				got = append(got, conn.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCandidatesStop: a walk that is broken off asks for no more.
func TestCandidatesStop(t *testing.T) {
	rt := catalog.RouteTarget{Provider: pool(), Model: "gpt-5"}
	key := &catalog.Key{PreferredConnections: []string{"c"}}
	n := 0
	for range route.Candidates(&rt, key) {
		if n++; n == 1 {
			break
		}
	}
	if n != 1 {
		t.Errorf("went on for %d connections", n)
	}
}

// TestNoAllocation: ordering and walking are on the path of every request.
func TestNoAllocation(t *testing.T) {
	p := pool()
	r := &catalog.Route{Kind: catalog.KindCombo, Strategy: "priority", Targets: []catalog.RouteTarget{{Provider: p, Model: "gpt-5"}, {Provider: p, Model: "gpt-5-mini"}}}
	key := &catalog.Key{PreferredConnections: []string{"c"}}
	router := route.NewRouter(nil)
	var e route.Exhausted
	seen := 0
	allocs := testing.AllocsPerRun(100, func() {
		order := router.Order(r, nil, time.Time{})
		for i := range order.Len() {
			rt := order.At(i)
			for conn := range route.Candidates(rt, key) {
				if !e.Target(catalog.Target{Provider: rt.Provider, Connection: conn, Model: rt.Model}) {
					seen++
				}
			}
		}
		router.Dispatched(r, &r.Targets[0])
		router.Succeeded(r, &r.Targets[0], "a")
	})
	if allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
	if seen == 0 {
		t.Error("nothing was walked")
	}
}
