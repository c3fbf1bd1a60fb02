// Command extism-go is a plugin for Extism in plain Go, with the PDK of the Extism project and nothing of Weir's. Quay answers 500
// when a window of an account's quota is spent, and lists all windows. The manifest beside this file is what the plugin says of
// itself; the hooks do what no table can: they take the window that ends last.
//
//	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags='-s -w' -o quay.wasm .
package main

import (
	_ "embed"
	"encoding/json"

	pdk "github.com/extism/go-pdk"
)

//go:embed manifest.json
var manifest string

func main() {}

//go:wasmimport extism:host/user kv_add
func kvAdd(key uint64, delta, ttlMS int64) int64

// reply is what this plugin reads of the answer that is judged.
type reply struct {
	Status int `json:"status"`
	Error  struct {
		Text string `json:"text"`
	} `json:"error"`
}

// quay is the body of its errors.
type quay struct {
	Busy    bool `json:"busy"`
	Windows []struct {
		Left      int64 `json:"left"`
		ResetsInS int64 `json:"resets_in_s"`
	} `json:"windows"`
}

// spent is when the last of the spent windows ends, in seconds from now; false when none is spent.
func (q quay) spent() (seconds int64, ok bool) {
	for _, w := range q.Windows {
		if w.Left == 0 {
			seconds, ok = max(seconds, w.ResetsInS), true
		}
	}
	return seconds, ok
}

// read returns the answer and its body; a body that is something else is an empty one.
func read() (r reply, q quay, err error) {
	if err = pdk.InputJSON(&r); err == nil {
		_ = json.Unmarshal([]byte(r.Error.Text), &q)
	}
	return r, q, err
}

//go:wasmexport weir_describe
func describe() int32 {
	pdk.OutputString(manifest)
	return 0
}

//go:wasmexport weir_restate
func restate() int32 {
	r, q, err := read()
	if err != nil {
		return fail(err)
	}
	if _, ok := q.spent(); r.Status != 500 || !ok {
		return 0 // no output is no opinion
	}
	return answer(map[string]any{"status": 429, "code": "rate_limit_exceeded"})
}

//go:wasmexport weir_classify
func classify() int32 {
	r, q, err := read()
	if err != nil {
		return fail(err)
	}
	if seconds, ok := q.spent(); ok {
		return answer(map[string]any{"reason": "quota_exhausted", "scope": "connection", "fallback": true, "retry_after_ms": seconds * 1000})
	}
	if r.Status != 503 || !q.Busy {
		return 0
	}
	key := pdk.AllocateString("busy")
	defer key.Free()
	times := min(max(kvAdd(key.Offset(), 1, 60_000), 1), 5) // negative: it was not granted
	pdk.Log(pdk.LogInfo, "quay is busy")
	return answer(map[string]any{"reason": "overloaded", "scope": "connection", "fallback": true, "cooldown_ms": 2000 * times})
}

func answer(v map[string]any) int32 {
	if err := pdk.OutputJSON(v); err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int32 {
	pdk.SetError(err)
	return 1
}
