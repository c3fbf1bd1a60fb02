package plugin

import (
	"runtime"
	"testing"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// BenchmarkHook is one call of a hook of a small guest with everything around it: quarantine, pool, fuel, input, answer. It is
// to be held against the raw figures of an unmetered call in package fuel.
func BenchmarkHook(b *testing.B) {
	_, s := setOf(b, Options{}, guestFile(module{manifest: hookManifest, answer: `{"reason":"overloaded"}`}))
	g, input := s.byName["acme"].v.guest, make([]byte, 1024)
	read := func([]byte) error { return nil }
	b.Run("pooled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := g.call(b.Context(), wire.OpClassify, input, read); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("instance", func(b *testing.B) {
		turn, err := g.begin(b.Context(), wire.OpClassify, nil, false)
		if err != nil {
			b.Fatal(err)
		}
		defer turn.end(nil, resultOK)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := turn.in.within(b.Context(), wire.OpClassify, wire.OpClassify, input, turn.began, turn.began.Add(time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSpinningGuest measures what a guest that never ends costs everybody else: each hook of it runs for its fuel, and a
// collection of garbage, or another plugin's hook, waits no longer than that (ABI-7). Compiled code cannot be preempted, so
// the budget of a hook is the bound.
func BenchmarkSpinningGuest(b *testing.B) {
	_, s := setOf(b, Options{}, guestFile(module{manifest: hookManifest, call: codeSpin}),
		source{origin: OriginFolder, file: "calm.wasm", bytes: module{manifest: `{"name":"calm","version":"1.0.0","kinds":["classifier"],"hooks":["classify"]}`}.wasm()})
	spin := func() {
		s.byName["acme"].v.ward.lift(time.Now())
		_ = s.byName["acme"].v.guest.call(b.Context(), wire.OpClassify, nil, func([]byte) error { return nil }) // it is to fail
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			spin()
		}
	})
	beside := func(b *testing.B, f func()) {
		done, over := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for {
				select {
				case <-over:
					return
				default:
					spin()
				}
			}
		}()
		worst := time.Duration(0)
		for b.Loop() {
			began := time.Now()
			f()
			worst = max(worst, time.Since(began))
		}
		close(over)
		<-done
		b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
	}
	b.Run("gc without it", func(b *testing.B) {
		for b.Loop() {
			runtime.GC()
		}
	})
	b.Run("gc beside it", func(b *testing.B) { beside(b, runtime.GC) })
	b.Run("hook beside it", func(b *testing.B) {
		beside(b, func() {
			if err := s.byName["calm"].v.guest.call(b.Context(), wire.OpClassify, nil, func([]byte) error { return nil }); err != nil {
				b.Fatal(err)
			}
		})
	})
}
