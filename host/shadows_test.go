package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host"
)

// shown is a plugin as the API shows it.
type shown struct {
	Mode, State, Version string
	Fault                *struct{ Step, Code string }
	Shadow               *struct{ Agreed, Differed, Failed int }
	Differences          []struct {
		Excerpt         string
		Counted, Shadow struct{ Status int }
	}
}

func showPlugin(t *testing.T, h *host.Host, name string) (p shown) {
	t.Helper()
	rec := call(h, "GET", "/api/plugins/"+name, "", "Authorization", "Bearer "+adminKey)
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != 200 {
		t.Fatal(rec.Code, err, rec.Body)
	}
	return p
}

func pack(version, rules string) string {
	return "name: quirks\nversion: " + version + "\nkinds: [restatement, classifier]\nmatches: [{providers: [mock]}]\nrules:\n" + rules
}

// withFolder starts a gateway with a plugin folder of these files; the rest of the plugins section is given.
func withFolder(t *testing.T, upstream, section string, files map[string]string) (*host.Host, host.Options) {
	t.Helper()
	o := options(t, upstream)
	o.PluginsDir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(o.PluginsDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addSection(t, o, section)
	return start(t, o), o
}

func addSection(t *testing.T, o host.Options, section string) {
	t.Helper()
	b, err := os.ReadFile(o.ConfigFile)
	if err == nil {
		_, rest, found := strings.Cut(string(b), "\n#\n")
		if !found {
			rest = string(b)
		}
		err = os.WriteFile(o.ConfigFile, []byte("plugins: {"+section+"}\n#\n"+rest), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A candidate in the folder judges what the gateway's calls meet, after their answers, and changes none of them (PLG-4).
func TestShadowInTheFolder(t *testing.T) {
	upstream := mock(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":{"message":"quota of sk-upstream-0123456789 reached"}}`)
	})
	h, _ := withFolder(t, upstream, "", map[string]string{
		"quirks.yaml":        pack("1.0.0", "- {id: plain, status: [403], then: {reason: content_filtered, scope: request, fallback: false}}\n"),
		"quirks.shadow.yaml": pack("2.0.0", "- {id: quota, status: [403], text_contains: [quota], then: {restate_status: 429}}\n"),
	})
	w := call(h, "POST", "/v1/chat/completions", ask)
	if w.Code != 403 {
		t.Errorf("PLG-4: the shadow changed the answer: %d %s", w.Code, w.Body)
	}
	var p shown
	for began := time.Now(); p.Shadow == nil || p.Shadow.Differed == 0; time.Sleep(10 * time.Millisecond) {
		if p = showPlugin(t, h, "quirks"); time.Since(began) > 10*time.Second {
			t.Fatalf("PLG-4: nothing was compared: %+v", p)
		}
	}
	if p.Version != "1.0.0" || len(p.Differences) != 1 || p.Differences[0].Counted.Status != 403 || p.Differences[0].Shadow.Status != 429 {
		t.Errorf("PLG-4: %+v", p)
	}
	if text := p.Differences[0].Excerpt; !strings.Contains(text, "quota") || strings.Contains(text, "sk-upstream") {
		t.Errorf("DATA-1: the difference shows %q", text)
	}
}

// The configuration file says whom to trust, also while the gateway runs, and a key that is none is a fault with its place.
func TestTrustInTheFile(t *testing.T) { // PLG-11, ABI-11, CLI-5
	h, o := withFolder(t, mock(t, hello), "", map[string]string{"quirks.yaml": pack("1.0.0", "- {id: plain, status: [403], then: {reason: overloaded}}\n")})
	if p := showPlugin(t, h, "quirks"); p.State != "active" {
		t.Fatalf("%+v", p)
	}
	addSection(t, o, "trust: locked")
	if err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := showPlugin(t, h, "quirks"); p.State != "rejected" || p.Fault == nil || p.Fault.Step != "trust" || p.Fault.Code != "not_locked" {
		t.Errorf("PLG-11: %+v", p)
	}
	addSection(t, o, "trust: signed, trusted_keys: [nonsense]")
	if err := h.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "plugins.trusted_keys[0]: is no minisign public key") {
		t.Errorf("ABI-11: %v", err)
	}
	addSection(t, o, "trust: open, modes: {quirks: shadow}")
	if err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := showPlugin(t, h, "quirks"); p.State != "active" || p.Mode != "shadow" || p.Shadow == nil {
		t.Errorf("PLG-4: %+v", p)
	}
}
