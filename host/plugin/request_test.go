package plugin

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

const requestManifest = `{"name":"acme","version":"1.0.0","kinds":["executor"],"hooks":["plan","on_request","on_response"],"needs":{"headers":["x-*"]},"providers":[{"id":"acme","base_url":"https://x.example"}]}`

func executorOf(t testing.TB, o Options, m module) (*Executor, *guest) {
	t.Helper()
	_, s := setOf(t, o, guestFile(m))
	return s.byName["acme"], s.byName["acme"].v.guest
}

// What on_request and on_response may answer, and what is garbage (ABI-3, ABI-8).
func TestEditsOfAGuest(t *testing.T) {
	refused := errors.New("the host cannot use that")
	for _, c := range []struct {
		name, answer string
		check        func(*wire.Edits) error
		headers      string
		kind         string // of the violation
	}{
		{"edits", `{"headers":{"x-a":"1"},"body":[{"op":"delete","path":"store"}]}`, nil, "1", ""},
		{"no opinion", ``, nil, "", ""},
		{"declined", `{"error":{"code":"unsupported","message":"no"}}`, nil, "", ""},
		{"not JSON", `hello`, nil, "", violationGarbage},
		{"a wrong type", `{"headers":7}`, nil, "", violationGarbage},
		{"an unknown edit", `{"body":[{"op":"explode","path":"x"}]}`, nil, "", violationGarbage},
		{"65 edits", `{"body":[` + strings.Repeat(`{"op":"delete","path":"x"},`, 64) + `{"op":"delete","path":"x"}]}`, nil, "", violationGarbage},
		{"a header with a line break", `{"headers":{"x-a":"1\r\nx-b: 2"}}`, nil, "", violationGarbage},
		{"what the host cannot use", `{"headers":{"x-a":"1"}}`, func(*wire.Edits) error { return refused }, "", violationGarbage},
	} {
		t.Run("ABI-3 "+c.name, func(t *testing.T) {
			e, g := executorOf(t, Options{}, module{manifest: requestManifest, answer: c.answer})
			for _, ask := range []func() (*wire.Edits, error){
				func() (*wire.Edits, error) {
					return e.Request(t.Context(), wire.RequestFacts{Provider: "acme"}, c.check)
				},
				func() (*wire.Edits, error) {
					return e.Response(t.Context(), wire.ResponseFacts{Status: 200}, http.Header{}, c.check)
				},
			} {
				edits, err := ask()
				if (edits != nil) != (c.headers != "") || edits != nil && edits.Headers["x-a"] != c.headers || errors.Is(err, ErrUnavailable) {
					t.Errorf("%+v, %v", edits, err)
				}
				if failed := c.kind != "" || c.name == "declined"; failed != (err != nil) {
					t.Errorf("%v", err)
				}
			}
			n := g.counters.read()
			if c.kind == "" && len(n.Violations) != 0 || c.kind != "" && n.Violations[c.kind] != 2 {
				t.Errorf("%+v", n)
			}
			if c.name == "declined" && n.Declined != 2 || c.name == "no opinion" && n.NoOpinion != 2 {
				t.Errorf("%+v", n)
			}
			if free := g.pool.free(); c.kind == "" && free != 1 {
				t.Errorf("%d instances", free)
			}
		})
	}
}

// on_response sees the headers that the manifest declares, and never a credential (ABI-2).
func TestHeadersOfAResponse(t *testing.T) {
	// The guest answers its whole input back, which is no answer: the violation's cause would not show it, so it is read from memory.
	e, g := executorOf(t, Options{}, module{manifest: requestManifest})
	h := http.Header{"X-Request-Id": {"a", "b"}, "Set-Cookie": {"secret"}, "X-Api-Key": {"secret"}, "Content-Type": {"text"}}
	if _, err := e.Response(t.Context(), wire.ResponseFacts{Status: 201, NowMS: 7}, h, nil); err != nil {
		t.Fatal(err)
	}
	raw, _ := g.pool.idle[0].memory.Read(3<<16, 200)
	in := string(raw)
	if !strings.HasPrefix(in, `{"status":201,"headers":{"x-request-id":"a, b"},"now_ms":7}`) || strings.Contains(in, "secret") {
		t.Errorf("the guest reads %s", in)
	}
}

// A plan for a host that is neither the connection's own nor granted is garbage (ABI-3, ABI-8).
func TestHostsOfPlans(t *testing.T) {
	manifest := strings.Replace(requestManifest, `"needs"`, `"permissions":{"http":{"hosts":["api.acme.example","*.wild.example","port.example:8443"],"reason":"x"}},"needs"`, 1)
	o := Options{Settings: map[string]Settings{"acme": {Grants: Grants{HTTPHosts: []string{"api.acme.example", "*.wild.example", "port.example:8443"}}}}}
	for url, ok := range map[string]bool{
		"{{connection.base_url}}/x":        true,
		"https://own.example/v1/{{model}}": true,
		"https://api.acme.example/x":       true,
		"https://a.wild.example/x":         true,
		"https://port.example:8443/x":      true,
		"https://port.example/x":           false,
		"https://api.acme.example:8443/x":  false,
		"https://wild.example/x":           false,
		"https://evil.example/x":           false,
		"https://wild.example.evil/x":      false,
		"https://api.acme.example.evil/x":  false,
	} {
		e, g := executorOf(t, o, module{manifest: manifest, answer: `{"url":"` + url + `"}`})
		q := wire.PlanQuery{Provider: "acme", Endpoint: "/v1/chat/completions", Connection: wire.PlanConnection{BaseURL: "https://own.example/v1"}}
		p, err := e.Plan(t.Context(), q, wire.AuthAPIKey)
		if (err == nil) != ok || (p != nil) != ok || !ok && (!errors.Is(err, ErrUnavailable) || g.counters.read().Violations[violationGarbage] != 1) {
			t.Errorf("ABI-8 %s: %v", url, err)
		}
	}
}

// What WASI does for a guest is bounded by its arguments: a guest pays nothing for the host's work (ABI-8).
func TestLongWASICalls(t *testing.T) {
	write := func(vectors int64) module {
		return module{manifest: hookManifest, imports: []string{"$wasi_snapshot_preview1.fd_write"}, // the result lands in the answer
			call: slices.Concat(i32(answerAt), i32(1), i32(0x38000), i32(vectors), i32(answerAt+8), []byte{0x10, 0, 0x36, 2, 0}, place(answerAt, 1))}
	}
	for vectors, want := range map[int64]byte{1024: 0, 1025: wasiInvalid, 1 << 20: wasiInvalid} {
		_, g := executorOf(t, Options{}, write(vectors))
		got := byte(255)
		if err := g.call(t.Context(), wire.OpClassify, nil, func(out []byte) error { got = out[0]; return nil }); err != nil || got != want {
			t.Errorf("fd_write of %d vectors: errno %d, %v, want %d", vectors, got, err, want)
		}
	}
}
