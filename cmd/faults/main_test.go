package main

import (
	"context"
	"slices"
	"testing"
)

// The faults that take only seconds, against the real program in both dialects: FLT-1, FLT-2, FLT-3, FLT-4, FLT-5, FLT-8, FLT-10, FLT-11,
// FLT-12, FLT-13, FLT-14, FLT-16. The others, FLT-6, FLT-7, FLT-9 and FLT-15, take their time and are for make faults.
func TestQuickFaults(t *testing.T) {
	quick := []string{"FLT-1", "FLT-2", "FLT-3", "FLT-4", "FLT-5", "FLT-8", "FLT-10", "FLT-11", "FLT-12", "FLT-13", "FLT-14", "FLT-16"}
	up, err := newUpstream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.close)
	var walls []*wall
	for _, d := range dialects {
		for _, f := range faults {
			if slices.Contains(quick, f.id) {
				walls = append(walls, newWall(f, d, up))
			}
		}
	}
	g, err := startGateway(t.Context(), "", configOf(walls, up.url), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.stop)
	t.Run("walls", func(t *testing.T) {
		for _, w := range walls {
			w.gateway, w.key = g.url, g.key
			t.Run(w.fault.id+" "+w.dialect.name, func(t *testing.T) {
				t.Parallel()
				w.play(t.Context())
				if len(w.wrong) > 0 || len(w.seen) == 0 {
					t.Errorf("%s", w.said())
				}
			})
		}
	})
	if t.Failed() {
		t.Log(g.tail(6000))
	}
}

// A wall that fails says so: a gateway that passes the faults through is none.
func TestCardSeesFailures(t *testing.T) {
	up, err := newUpstream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.close)
	for _, d := range dialects {
		for _, id := range []string{"FLT-4", "FLT-5", "FLT-8", "FLT-11"} {
			i := slices.IndexFunc(faults, func(f *fault) bool { return f.id == id })
			w := newWall(faults[i], d, up)
			w.gateway = up.url + "/" + w.name(w.fault.routes[0].name, "primary") // straight to the provider that fails
			ctx, cancel := context.WithCancel(t.Context())
			w.play(ctx)
			cancel()
			if len(w.wrong) == 0 {
				t.Errorf("%s in %s passes without a gateway: %s", id, d.name, w.said())
			}
		}
	}
}
