package body

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

// agentBody is a chat request of about n bytes whose text holds an escape each line, as prompts with code do.
func agentBody(n int) string {
	line := `    if err := run(ctx, \"gateway\"); err != nil { return fmt.Errorf(\"run: %w\", err) }\n`
	pre := `{"model":"acme/large-2026","stream":true,"max_tokens":1024,"temperature":0.7,"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{}}}}],"messages":[`
	message := `{"role":"user","content":"` + strings.Repeat(line, min(20, max(1, n/400))) + `"}`
	count := max(1, (n-len(pre))/(len(message)+1))
	return pre + strings.Repeat(message+",", count-1) + message + `]}`
}

func sizes(b *testing.B, f func(b *testing.B, text string)) {
	for _, kb := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%dKB", kb), func(b *testing.B) {
			text := agentBody(kb << 10)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			f(b, text)
		})
	}
}

func BenchmarkScan(b *testing.B) {
	sizes(b, func(b *testing.B, text string) {
		raw := []byte(text)
		var s Scan
		for b.Loop() {
			if err := s.run(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkScanProse has one escape in eighty bytes.
func BenchmarkScanProse(b *testing.B) {
	sizes(b, func(b *testing.B, text string) {
		line := strings.Repeat("a line of prose that ends as lines do ", 2) + `\n`
		raw := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(line, len(text)/len(line)) + `"}]}`)
		var s Scan
		for b.Loop() {
			if err := s.run(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkModel sets the model for attempt after attempt from one buffer.
func BenchmarkModel(b *testing.B) {
	sizes(b, func(b *testing.B, text string) {
		buf := read(b, text)
		e := compile(b, set("model", `"large-2026"`))
		for b.Loop() {
			p, err := e.Apply(buf)
			if err != nil {
				b.Fatal(err)
			}
			p.Discard()
			buf.blk.shared = false
		}
	})
}

// BenchmarkTable runs a plan with five top-level edits; BenchmarkNested one that goes into every message.
func BenchmarkTable(b *testing.B) {
	benchEdits(b, set("model", `"large-2026"`), def("max_tokens", "4096"), del("store"), rename("max_tokens", "max_completion_tokens"), clamp("temperature", num(0), num(1)))
}

func BenchmarkNested(b *testing.B) {
	benchEdits(b, set("model", `"large-2026"`), del("messages.*.name"))
}

func benchEdits(b *testing.B, edits ...wire.Edit) {
	sizes(b, func(b *testing.B, text string) {
		buf := read(b, text)
		e := compile(b, edits...)
		for b.Loop() {
			p, err := e.Apply(buf)
			if err != nil {
				b.Fatal(err)
			}
			p.Discard()
			buf.blk.shared = false
		}
	})
}

// BenchmarkRequest is what one request costs in all: read, scan, set the model, body, release.
func BenchmarkRequest(b *testing.B) {
	sizes(b, func(b *testing.B, text string) {
		raw, r := []byte(text), bytes.NewReader(nil)
		e := compile(b, set("model", `"large-2026"`))
		for b.Loop() {
			r.Reset(raw)
			buf, err := Read(r, int64(len(text)), 32<<20)
			if err != nil {
				b.Fatal(err)
			}
			p, err := e.Apply(buf)
			if err != nil {
				b.Fatal(err)
			}
			body := p.Body()
			_, _ = io.Copy(io.Discard, body)
			body.Close()
			buf.Release()
		}
	})
}
