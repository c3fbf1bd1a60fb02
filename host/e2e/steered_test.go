package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

// SCN-18: nothing that a caller sends chooses where its request goes, a redirect of a provider is not followed, and the provider's key
// reaches nobody else.
func TestNobodySteersARequest(t *testing.T) {
	t.Parallel()
	u, elsewhere := newUpstream(t), newUpstream(t)
	g := serve(t, setup{config: openProvider(u.url)})
	host := strings.TrimPrefix(elsewhere.url, "http://")
	for what, members := range map[string]string{
		"api_base": `"api_base":"` + elsewhere.url + `/v1"`, "base_url": `"base_url":"` + elsewhere.url + `/v1"`, "baseUrl": `"baseUrl":"` + elsewhere.url + `"`,
		"extra_body": `"extra_body":{"api_base":"` + elsewhere.url + `"}`, "litellm_params": `"litellm_params":{"api_base":"` + elsewhere.url + `"}`,
		"metadata": `"api_base":"http://169.254.169.254/latest"`,
	} {
		body := strings.Replace(question("open/m", false), "{", "{"+members+",", 1)
		if a := g.call(http.MethodPost, "/v1/chat/completions", body); text(a, false) != goodText {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	for _, header := range []string{"X-Forwarded-Host", "Forwarded", "X-Original-Url", "X-Rewrite-Url", "X-Api-Base", "Helicone-Target-Url", "X-Weir-Base-Url"} {
		if a := g.chat("open/m", false, header, elsewhere.url); text(a, false) != goodText {
			t.Errorf("%s: %d %s", header, a.status, a.body)
		}
	}
	if a := g.chat("open/m", false, "Host", host); a.status != http.StatusForbidden && text(a, false) != goodText {
		t.Errorf("Host: %d %s", a.status, a.body)
	}
	if a := g.chat(elsewhere.url+"/v1/m", false); a.status != http.StatusNotFound && a.status != http.StatusBadRequest {
		t.Errorf("an address as a model: %d %s", a.status, a.body)
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		u.answers("key-only", func(w http.ResponseWriter, _ *http.Request, _ bool) {
			w.Header().Set("Location", elsewhere.url+"/v1/chat/completions?key=taken")
			w.WriteHeader(status)
		})
		if a := g.chat("open/m", false); a.status < 400 || a.header.Get("Location") != "" || strings.Contains(a.body, host) {
			t.Errorf("%d: %d %v %s", status, a.status, a.header, a.body)
		}
	}
	if seen := elsewhere.record(); seen != "" {
		t.Errorf("somebody else was sent: %s", seen)
	}
	if seen := u.record(); !strings.Contains(seen, "key-only") {
		t.Error("the provider was not asked, so nothing was tried")
	}
	for _, address := range []string{"http://169.254.169.254/v1", "http://[fd00:ec2::254]/v1", "http://metadata.google.internal/v1"} {
		a := g.admin(http.MethodPost, "/api/providers", `{"id":"x","provider":"openai","apiKey":"sk-x-0123456789","baseUrl":"`+address+`"}`)
		if a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", address, a.status, a.body)
		}
	}
}
