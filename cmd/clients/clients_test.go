package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestMatrix(t *testing.T) {
	m := &matrix{}
	for _, line := range []string{
		"openai-chat text pass usage {} (12 ms)", "openai-chat tool fail no calls (3 ms)", "anthropic-sdk text pass", "sdk-js: 1 passed, 1 failed", "",
	} {
		if r, ok := read(line, "chat"); ok {
			m.add(r)
		}
	}
	var out bytes.Buffer
	m.print(&out)
	for _, want := range []string{"failed: openai-chat (chat) on chat: tool: no calls (3 ms)", "1/2*", "1/1 ", "2 passed, 1 failed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for client, want := range map[string]string{
		"openai-go-chat": "chat", "openai-responses": "responses", "langchain-anthropic": "messages", "genai-go": "gemini", "ai-google": "gemini",
		"codex": "responses", "claude-code": "messages", "opencode": "chat", "gemini-cli": "gemini",
	} {
		if got := dialectOf(client); got != want {
			t.Errorf("%s speaks %s", client, got)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"--groups", "php"}, {"--upstreams", "soap"}, {"left"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	if s, err := parse(nil, io.Discard); err != nil || len(s.upstreams) != 4 {
		t.Error(s, err)
	}
}
