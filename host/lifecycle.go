package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/manage"
	"github.com/weirgate/weir/host/vault"
)

// Start opens the listener and serves. An address beyond loopback without any client key is refused (SEC-2).
func (h *Host) Start(ctx context.Context) error {
	if h.o.Listen == NoListener {
		return nil
	}
	if !h.loopback() && !h.catalog.Current().NeedKey() {
		return fmt.Errorf("%s is reachable from other machines and there is no client key, so anybody could spend your accounts; "+
			"run `weir serve` on 127.0.0.1 and make one with `weir keys create`, or set WEIR_CLIENT_KEY", h.process.Listen)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", h.process.Listen)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: h.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(h.o.Log.Handler(), slog.LevelWarn), BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if err := h.serve(srv, ln); err != nil {
		return errors.Join(err, ln.Close())
	}
	return nil
}

// errStopped: Start came after Stop.
var errStopped = errors.New("the gateway was stopped; make a new one with New")

// serve takes the listener into use, unless Stop came first.
func (h *Host) serve(srv *http.Server, ln net.Listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping.Load() {
		return errStopped
	}
	if h.keepsFiles() {
		if err := vault.WriteAddr(h.process.DataDir, ln.Addr().String()); err != nil {
			return err
		}
	}
	h.server, h.listener = srv, ln
	h.jobs.Go(func() {
		if err := srv.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			h.o.Log.Error("the listener failed", "error", err.Error())
		}
	})
	return nil
}

// Addr is the address that Start listens on; before it, the one that was asked for.
func (h *Host) Addr() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener == nil {
		return h.process.Listen
	}
	return h.listener.Addr().String()
}

// Stop refuses new connections, lets running requests end for up to the shutdown grace, streams included, then ends them,
// flushes the store and closes everything (CLI-4). After it no goroutine of the host runs. Without a listener of its own it
// answers new requests with 503 and waits likewise; ending what still runs is then up to the server of the embedding program.
func (h *Host) Stop(ctx context.Context) error {
	h.mu.Lock()
	first := h.stopping.CompareAndSwap(false, true)
	srv := h.server
	h.mu.Unlock()
	if !first {
		return nil
	}
	close(h.stopped)
	grace, cancel := context.WithTimeout(ctx, h.process.ShutdownGrace)
	defer cancel()
	if srv == nil {
		if err := h.visitors.wait(grace); err != nil {
			h.o.Log.Warn("the shutdown grace is over; requests still run")
		}
		return h.close(ctx)
	}
	if err := srv.Shutdown(grace); err != nil {
		h.o.Log.Warn("the shutdown grace is over; requests that still ran were ended")
		_ = srv.Close() // what it would say was said
	}
	h.leave(ctx)
	return h.close(ctx)
}

// unwind is how long requests whose connections were closed may take to notice.
const unwind = 5 * time.Second

// leave waits for the last handlers, which outlive their closed connections for a moment, and removes the address file.
func (h *Host) leave(ctx context.Context) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwind)
	defer cancel()
	if err := h.visitors.wait(end); err != nil {
		h.o.Log.Warn("requests still run after their connections were closed")
	}
	if h.keepsFiles() {
		if err := vault.RemoveAddr(h.process.DataDir, h.Addr()); err != nil {
			h.o.Log.Warn("the address file could not be removed", "error", err.Error())
		}
	}
}

// closing is how long each part may take to close. It does not depend on the time that the caller of Stop gave, since what was
// acknowledged must reach the store also after a grace that ran out.
const closing = 10 * time.Second

// close ends what assemble began, in the opposite order; parts that never came up are left out.
func (h *Host) close(ctx context.Context) error {
	h.end()
	h.jobs.Wait()
	if h.client != nil {
		h.client.Close()
	}
	var errs []error
	part := func(close func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		errs = append(errs, close(ctx))
	}
	if h.plugins != nil {
		part(h.plugins.Close)
	}
	if h.errors != nil {
		part(h.errors.Stop)
	}
	if h.ledger != nil {
		part(h.ledger.Stop)
	}
	if h.record != nil {
		part(h.record.Stop)
	}
	if h.store != nil && h.ownStore {
		errs = append(errs, h.store.Close())
	}
	return errors.Join(errs...)
}

// listens is the listener as management's Host and Origin checks want it (SEC-3).
func (h *Host) listens() manage.Listener {
	if h.o.Listen == NoListener {
		return manage.Listener{Host: "127.0.0.1"}
	}
	host, _, err := net.SplitHostPort(h.process.Listen)
	if err != nil {
		host = ""
	}
	return manage.Listener{Host: host}
}
