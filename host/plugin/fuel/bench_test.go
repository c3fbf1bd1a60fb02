package fuel

import (
	"math"
	"strings"
	"testing"
)

const (
	goGuest   = "../../../plugins/demo/demo.wasm"
	cGuest    = "testdata/guest_c.wasm"
	rustGuest = "testdata/guest_rust.wasm"
)

// document is a JSON document of about n bytes that looks like a request.
func document(n int) string {
	message := `{"role":"user","content":"What is the \"weather\" like in Paris, and is it 21.5 degrees?"},`
	return `{"model":"large","stream":true,"messages":[` + strings.Repeat(message, max(1, n/len(message))) + `{}]}`
}

const demoDescribe = `{"host":{"name":"weir","version":"1.0.0","abi":"1.0","features":["rules","kv"]}}`

func demoRespond(model string) string {
	return `{"provider":"demo","connection":{"id":"demo-a"},"model":"` + model + `","upstream_model":"` + model +
		`","endpoint":"/v1/chat/completions","stream":false,"message_count":1,"body_bytes":90,` +
		`"fields":{"messages.-1.role":"\"user\"","messages.-1.content":"hello world"},"now_ms":1700000000000}`
}

// guestCalls are the calls that are timed with and without metering.
var guestCalls = []struct {
	name, file string
	op         int
	input      string
}{
	{"go/describe", goGuest, 1, demoDescribe},
	{"go/respond", goGuest, 15, demoRespond("echo")},
	{"c/scan-1k", cGuest, 100, document(1 << 10)},
	{"c/scan-10k", cGuest, 100, document(10 << 10)},
	{"c/echo", cGuest, 101, document(1 << 10)},
	{"c/fib-20", cGuest, 102, strings.Repeat("x", 20)},
	{"c/sort-1k", cGuest, 103, document(1 << 10)},
	{"c/indirect-1k", cGuest, 104, document(1 << 10)},
	{"c/floats-1k", cGuest, 105, document(1 << 10)},
	{"rust/words-1k", rustGuest, 100, document(1 << 10)},
	{"rust/walk-1k", rustGuest, 101, document(1 << 10)},
}

// BenchmarkCall compares a metered call with the same call without metering (ABI-7).
func BenchmarkCall(b *testing.B) {
	for _, x := range guestCalls {
		plain := file(b, x.file)
		for _, v := range []struct {
			name string
			wasm []byte
		}{{"plain", plain}, {"metered", rewritten(b, plain)}} {
			b.Run(x.name+"/"+v.name, func(b *testing.B) {
				r := start(b, v.wasm)
				b.ReportAllocs()
				for b.Loop() {
					if v.name == "metered" {
						r.setFuel(math.MaxInt64)
					}
					if _, err := r.op(x.op, x.input); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRewrite times the check and the rewriting.
func BenchmarkRewrite(b *testing.B) {
	wasm := file(b, goGuest)
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		rewritten(b, wasm)
	}
}
