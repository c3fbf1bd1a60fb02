package toollimit

import (
	"strings"
	"testing"
	"time"
)

// OTH-21: which texts say that there are too many tools, and how many the provider takes.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		text string
		sent int
		want int // 0: nothing of the kind
	}{
		{`{"error":{"message":"Maximum number of tools is 64"}}`, 100, 64},
		{`{"error":{"message":"maximum number of tools (128) exceeded: 150"}}`, 150, 128},
		{`too many tools: 150 > 128`, 150, 128},
		{`too many tools: 149 > 128 allowed`, 150, 128}, // it counts otherwise
		{`Too many tools provided (max 20), received 35`, 40, 20},
		{`too many tools: got 35, maximum 20`, 40, 20},
		{`150 tools given, which is over the tools limit of 128.`, 150, 128},
		{`128 is the maximum number of tools`, 150, 128},
		{`400 Bad Request: 128 is the maximum number of tools`, 500, 128},
		{`tools limit exceeded (status 400): at most 200 per request`, 500, 200},
		{`Maximum number of items is 1,536 for tools`, 2000, 1536},
		{`array schema: maximum number of items 128`, 150, 128},
		{`'messages': maximum number of items is 100`, 150, 0},           // another list
		{`messages and tools: maximum number of items is 100`, 150, 100}, // tools too
		{`maximum number of tools is 64`, 64, 0},                         // it was kept
		{`maximum number of tools is 64`, 0, 0},                          // none was sent
		{`Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.`, 150, 128},
		{`too many function declarations: the limit is 512`, 600, 512},
		{`The number of tools (150) exceeds the limit of 128.`, 150, 128},
		{`too many tools`, 150, 128}, // no number: the usual one
		{`too many tools`, 100, 0},
		{`too many tools: 0 allowed, 50000 sent`, 200, 128}, // neither is from 1 to 10000
		{`tools[12].function.name: too long; gpt-4.1 takes 64 characters`, 100, 0},
		{`too many tools in tools[3] for gpt-4.1: v2 takes 10`, 100, 10},
		{`rate limit of 100 requests`, 200, 0},
		{``, 200, 0},
	} {
		if got, ok := Read(c.text, c.sent); ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%q with %d: %d %v, want %d", c.text, c.sent, got, ok, c.want)
		}
	}
}

// OTH-21: what is known; a learned limit holds for 24 hours, if it is lower than the present one.
func TestLimits(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var l Limits
	is := func(provider string, at time.Time, want int) {
		t.Helper()
		if n, ok := l.Of(provider, at); n != want || ok != (want > 0) {
			t.Errorf("%s: %d %v, want %d", provider, n, ok, want)
		}
	}
	is("grok-cli", now, 200)
	is("nvidia", now, 1536)
	is("openai", now, 0) // the usual limit is a guess, by which nothing is held back
	for _, c := range []struct {
		provider string
		n        int
		learned  bool
	}{{"grok-cli", 300, false}, {"grok-cli", 200, false}, {"grok-cli", 150, true}, {"openai", 500, true}, {"openai", 64, true}, {"openai", 100, false}, {"acme", 0, false}} {
		if got := l.Learn(c.provider, c.n, now); got != c.learned {
			t.Errorf("%s %d: learned %v", c.provider, c.n, got)
		}
	}
	is("grok-cli", now, 150)
	is("openai", now.Add(Memory-time.Second), 64)
	is("openai", now.Add(Memory), 0)
	is("grok-cli", now.Add(Memory), 200)
	if !l.Learn("openai", 100, now.Add(Memory)) {
		t.Error("a limit that was forgotten still counts")
	}
}

// The memory is bounded.
func TestBounded(t *testing.T) {
	var l Limits
	now := time.Unix(0, 0)
	for i := range 3 * maxProviders {
		l.Learn(strings.Repeat("p", i%7)+time.Duration(i).String(), 5, now)
	}
	if len(l.learned) > maxProviders {
		t.Errorf("%d entries", len(l.learned))
	}
}

// A limit that is found is believable, whatever the text.
func FuzzRead(f *testing.F) {
	f.Add("too many tools: 150 > 128", 150)
	f.Add("maximum number of items is 1,536, ,,9", 2000)
	f.Fuzz(func(t *testing.T, text string, sent int) {
		if n, ok := Read(text, sent); ok && (n < 1 || n > maxTools || n >= sent) {
			t.Errorf("%d of %d", n, sent)
		}
	})
}
