package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The gateway answers inside another program, and leaves no goroutine behind when it is closed.
func TestEmbedded(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(t.Context())
	address, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- run(ctx, "127.0.0.1:0", func(a string) { address <- a }) }()
	select {
	case err := <-done:
		t.Fatal(err)
	case a := <-address:
		ask(t, "http://"+a+"/llm/v1/chat/completions")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func ask(t *testing.T, url string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(`{"model":"demo/echo","messages":[{"role":"user","content":"Hello"}]}`)) //nolint:noctx // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), "Hello") {
		t.Error(resp.StatusCode, string(b), err)
	}
}
