package plugin

import (
	"testing"

	"github.com/weirgate/weir/sdk/sdktest"
)

// BenchmarkEventOfTheSDK is one event of a stream through the example guest in Go: it must stay under 5 µs (ABI-5).
func BenchmarkEventOfTheSDK(b *testing.B) {
	wasm, err := sdktest.Build(b.Context(), "../../examples/guests/go-executor")
	if err != nil {
		b.Fatal(err)
	}
	_, s := setOf(b, Options{}, source{origin: OriginFolder, file: "acme-stream.wasm", bytes: wasm})
	e := s.byName["acme-stream"]
	for name, data := range map[string]string{
		"text": `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"The text so far"},"finish_reason":null}]}`,
		"done": "[DONE]",
	} {
		b.Run(name, func(b *testing.B) {
			h := e.Events(Calls{Events: true, Stateful: true, End: true})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Event(b.Context(), nil, []byte(data)); err != nil {
					b.Fatal(err)
				}
			}
			h.End(b.Context(), true)
		})
	}
}
