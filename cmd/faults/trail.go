package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// trail is what the gateway's ledger says of a request.
type trail struct {
	Outcome  string
	Notes    []string
	Tokens   struct{ Input, Output int }
	Attempts []struct {
		Provider string
		Status   int
		Billed   bool
	}
}

// trail waits for the row of an answer: rows are written behind.
func (w *wall) trail(ctx context.Context, a *answer) (t trail, err error) {
	id := a.header.Get("X-Request-Id")
	if id == "" {
		return t, errors.New("the answer names no request")
	}
	for range 50 {
		if t, err = w.row(ctx, id); err == nil {
			return t, nil
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return t, fmt.Errorf("the ledger has no row of the request: %w", err)
}

func (w *wall) row(ctx context.Context, id string) (t trail, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.gateway+"/api/requests/"+id, nil)
	if err != nil {
		return t, err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return t, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return t, fmt.Errorf("status %d", resp.StatusCode)
	}
	return t, json.NewDecoder(resp.Body).Decode(&t)
}

// billed says whether a trail has a failed attempt that is not billed, and then one that is, with the usage of one answer.
func (t *trail) billed() error {
	switch {
	case len(t.Attempts) != 2:
		return fmt.Errorf("%d attempts in the trail", len(t.Attempts))
	case t.Attempts[0].Status != http.StatusServiceUnavailable || t.Attempts[0].Billed || !t.Attempts[1].Billed:
		return fmt.Errorf("the trail says %+v", t.Attempts)
	case t.Tokens.Input != prompt || t.Tokens.Output != completion:
		return fmt.Errorf("the ledger counts %d/%d tokens", t.Tokens.Input, t.Tokens.Output)
	}
	return nil
}
