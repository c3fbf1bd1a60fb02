package main

import (
	"slices"
	"testing"

	"github.com/weirgate/weir/sdk"
	"github.com/weirgate/weir/sdk/sdktest"
)

// The examples, as an ordinary program.
func TestPlugin(t *testing.T) { sdk.RunExamples(t) } // ABI-12

// The same examples and all else that a gateway may do to a guest, in a sandbox.
func TestGuest(t *testing.T) { // ABI-1, ABI-2.4, ABI-5, ABI-12
	r := sdktest.RunGo(t, ".")
	var ops []string
	for _, c := range r.Costs {
		ops = append(ops, c.Op)
		if c.MaxFuel > c.Budget/4 {
			t.Errorf("%s spent %d of %d fuel", c.Op, c.MaxFuel, c.Budget)
		}
	}
	if want := []string{"plan", "on_event", "on_end"}; !slices.Equal(ops, want) || r.Size > 2_500_000 {
		t.Errorf("%d bytes, calls of %v, want %v", r.Size, ops, want)
	}
}

// Two streams at once: each says only what is new in it (ABI-5).
func TestEvents(t *testing.T) {
	chunk := func(text string) string {
		return `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}`
	}
	for i, c := range []struct {
		stream     uint32
		name, data string
		want       sdk.Action
	}{
		{1, "", `{"id":"c1","text":"Hel"}`, sdk.Replace("", []byte(chunk("Hel")))},
		{2, "", `{"id":"c1","text":"Good"}`, sdk.Replace("", []byte(chunk("Good")))},
		{1, "heartbeat", `{}`, sdk.Drop},
		{1, "", `{"id":"c1","text":"Hello"}`, sdk.Replace("", []byte(chunk("lo")))},
		{2, "", `{"id":"c1","text":"Good"}`, sdk.Drop},
		{2, "", `{"id":"c1","text":"Good day"}`, sdk.Replace("", []byte(chunk(" day")))},
		{1, "", `{"usage":{"prompt_tokens":1}}`, sdk.Pass},
		{1, "", `[DONE]`, sdk.Pass},
		{2, "", `{"fault":{"message":"gone"}}`, sdk.EndStream("internal", "gone")},
	} {
		if got := onEvent(&sdk.Event{Stream: c.stream, Name: c.name, Data: []byte(c.data)}); got.String() != c.want.String() {
			t.Errorf("event %d: %s, want %s", i, got, c.want)
		}
	}
}
