package host

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

// breakerHost is as much of a host as its breakers need.
func breakerHost(t *testing.T) *Host {
	t.Helper()
	values, _, warnings := settings.Resolve(func(string) (string, bool) { return "", false }, nil, nil)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	h := &Host{o: Options{Now: time.Now, Log: log}, catalog: catalog.NewRegistry(&catalog.Snapshot{Settings: values}), store: memory.New(memory.Options{})}
	h.breakers = breaker.New(time.Now)
	h.windows = window.New(h.breakers.IsOpen)
	h.record = record.New(record.Options{Store: h.store, Log: log, Gates: []record.Snapshotter{h.breakers}})
	return h
}

// fail lets n connections of the provider fail, and journals nothing.
func (h *Host) fail(n int) (events []store.Event) {
	at := resilience.Moment{Now: time.Now(), Catalog: h.catalog.Current()}
	for i := range n {
		t := catalog.Target{Provider: &catalog.Provider{ID: "p", Category: catalog.APIKey}, Connection: &catalog.Connection{ID: fmt.Sprint(i)}}
		permit, _ := h.breakers.Admit(at, t)
		events = append(events, h.breakers.Settle(at, t, permit, resilience.Outcome{
			Verdict: wire.Verdict{Reason: wire.ServerError, Scope: wire.ScopeProvider}, Cause: resilience.Cause{Status: 503},
		})...)
	}
	return events
}

func (h *Host) kinds(t *testing.T) (out []string) {
	t.Helper()
	for e, err := range h.store.Replay(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Kind)
	}
	return out
}

// BRK-41: a count that no transition carried reaches the journal although nothing else happens.
func TestCountsReachTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := breakerHost(t)
		h.record.Start()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { h.keepBreakers(ctx); close(done) }()
		if es := h.fail(3); len(es) != 1 {
			t.Fatalf("%d events of three failures at once", len(es))
		}
		time.Sleep(2 * breakerTick)
		synctest.Wait()
		stop()
		<-done
		if err := h.record.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := h.kinds(t); len(got) != 1 || got[0] != breaker.KindCounted {
			t.Errorf("journaled %v", got)
		}
		if err := h.store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// BRK-23: a change of useUpstream429BreakerHints resets all breakers, and that is journaled; another change does not.
func TestHintsResetBreakers(t *testing.T) {
	h := breakerHost(t)
	h.record.Start()
	h.record.Append(h.fail(12)...)
	previous := h.catalog.Current()
	change := func(edit func(*settings.Values)) breaker.Phase {
		values := *previous.Settings
		edit(&values)
		at := resilience.Moment{Now: time.Now(), Catalog: &catalog.Snapshot{Settings: &values}}
		h.hintsInForce(at, previous)
		return h.breakers.Status(at, "p").State
	}
	if s := change(func(v *settings.Values) { v.ProviderBreaker.APIKey.FailureThreshold = 5 }); s != breaker.Open {
		t.Errorf("after another change: %s", s)
	}
	if s := change(func(v *settings.Values) { v.ConnectionCooldown.APIKey.Use429BreakerHints = new(bool) }); s != breaker.Closed {
		t.Errorf("after the change: %s", s)
	}
	if err := h.record.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.kinds(t); len(got) == 0 || got[len(got)-1] != breaker.KindChanged {
		t.Errorf("journaled %v", got)
	}
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
}
