package host

import (
	"context"
	"net/http"
	"sync/atomic"
)

// visitors counts the requests that are in the handler, so that Stop closes nothing under one.
type visitors struct {
	n      atomic.Int64
	closed atomic.Bool
	empty  chan struct{}
}

func newVisitors() *visitors { return &visitors{empty: make(chan struct{}, 1)} }

// count lets requests through to next until wait was called.
func (v *visitors) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.n.Add(1)
		defer v.leave()
		if v.closed.Load() {
			http.Error(w, "the gateway is stopping", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (v *visitors) leave() {
	if v.n.Add(-1) == 0 && v.closed.Load() {
		select {
		case v.empty <- struct{}{}:
		default:
		}
	}
}

// wait refuses new requests and returns when none is left, or with the error of ctx.
func (v *visitors) wait(ctx context.Context) error {
	v.closed.Store(true)
	for v.n.Load() > 0 {
		select {
		case <-v.empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
