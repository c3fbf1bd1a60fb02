package host

import (
	"context"
	"errors"
	"testing"
)

// OV-26: who waits for a change learns when it is in force, when it cannot be, and when the host stops before it is.
func TestAwait(t *testing.T) {
	r, life := newRefresher(), t.Context()
	r.startAt(2)
	if err := r.await(t.Context(), life, 2); err != nil {
		t.Error(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.await(context.Background(), life, 3) }()
	r.report(3)
	r.built(2, nil)
	r.built(3, nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	fault := errors.New("two objects of one name")
	r.built(4, fault)
	if err := r.await(t.Context(), life, 4); !errors.Is(err, fault) {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := r.await(t.Context(), ended, 5); err == nil {
		t.Error("waits for a host that stopped")
	}
}
