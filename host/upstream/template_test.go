package upstream

import (
	"errors"
	"testing"
	"time"
)

// ABI-3: places, filters, and an unresolved name that fails.
func TestTemplate(t *testing.T) {
	v := values(func(name string) (string, bool) {
		m := map[string]string{"model": "a b", "secret.api_key": "k", "connection.data.org": ""}
		s, ok := m[name]
		return s, ok
	})
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"},
		{"Bearer {{secret.api_key}}", "Bearer k"},
		{"x={{model|urlquery}}&y", "x=a+b&y"},
		{"Basic {{secret.api_key|base64}}", "Basic aw=="},
		{`{{connection.data.org|default:"none"}}`, "none"},
		{`{{missing|default:"a|b}"}}!`, "a|b}!"},
	} {
		tpl, err := parseTemplate(c.in)
		if err != nil {
			t.Fatal(c.in, err)
		}
		if got, err := tpl.render(v); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.in, got, err)
		}
	}
	tpl, err := parseTemplate("{{secret.other}}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tpl.render(v); !errors.Is(err, ErrPlanInvalid) {
		t.Error("an unresolved name must fail the attempt:", err)
	}
	for _, bad := range []string{"{{", "{{}}", "{{model|upper}}", "{{model|default:x}}", "{{model|base64:\"x\"}}"} {
		if _, err := parseTemplate(bad); !errors.Is(err, ErrPlanInvalid) {
			t.Error(bad, err)
		}
	}
}

// ABI-3, INF-11, AFF-8: a place for a client's header never resolves to a credential, a cookie or an affinity header.
func TestRequestHeaderPlaces(t *testing.T) {
	m := Moment{RequestID: "r1", Now: time.Unix(7, 0), Header: map[string][]string{
		"Authorization": {"Bearer client"}, "X-Api-Key": {"client"}, "X-Goog-Api-Key": {"client"}, "Cookie": {"c"},
		"X-Codex-Session-Id": {"s"}, "Session-Id": {"s"}, "X-Weir-Mode": {"m"}, "X-Omniroute-Mode": {"m"}, "X-Plain": {"p"},
	}}
	for _, name := range []string{"authorization", "x-api-key", "x-goog-api-key", "cookie", "x-codex-session-id", "session-id",
		"x-weir-mode", "x-omniroute-mode"} {
		if v, ok := m.value("request.header." + name); ok {
			t.Errorf("%s resolved to %q", name, v)
		}
	}
	for name, want := range map[string]string{"request.header.x-plain": "p", "request.id": "r1", "now.unix_s": "7"} {
		if got, ok := m.value(name); !ok || got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
