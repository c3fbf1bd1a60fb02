package host_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/store"
)

// What the demo plugin counts in its kv goes on over a restart, and is written within a second while the host runs.
func TestPluginKVOverRestarts(t *testing.T) { // ABI-6
	o := options(t, "http://127.0.0.1:1")
	o.Demo = true
	env := o.Env
	o.Env = func(name string) (string, bool) {
		if name == "WEIR_SECRET_KEY" { // the store outlives a host
			return base64.StdEncoding.EncodeToString(make([]byte, 32)), true
		}
		return env(name)
	}
	const body = `{"model":"demo/flaky","messages":[{"role":"user","content":"hi"}]}`
	h := start(t, o)
	call(h, "POST", "/v1/chat/completions", body)
	asked := time.Now()
	for len(counters(t, o.Store)) == 0 {
		if time.Since(asked) > 5*time.Second { // one on a machine that is not busy
			t.Fatal("nothing was written")
		}
		time.Sleep(20 * time.Millisecond)
	}
	first := sum(counters(t, o.Store))
	stop(t, h)
	h = start(t, o)
	call(h, "POST", "/v1/chat/completions", body)
	stop(t, h) // writes what is left
	if second := sum(counters(t, o.Store)); first == 0 || second <= first {
		t.Errorf("%d calls were counted before the restart, %d with those after it", first, second)
	}
}

func counters(t *testing.T, s store.Store) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for doc, err := range s.List(t.Context(), "plugin-kv") {
		if err != nil {
			t.Fatal(err)
		}
		name, key, _ := strings.Cut(doc.ID, "/")
		plain, err := base64.RawURLEncoding.DecodeString(key)
		var d struct{ Value []byte }
		if err != nil || name != "demo" || json.Unmarshal(doc.Data, &d) != nil {
			t.Fatalf("%s: %s, %v", doc.ID, doc.Data, err)
		}
		if len(d.Value) == 8 {
			out[string(plain)] = int64(binary.LittleEndian.Uint64(d.Value))
		}
	}
	return out
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}
