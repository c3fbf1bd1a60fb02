package observe_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/weirgate/weir/host/observe"
)

// OBS-4: lines are text or JSON at a level; anything else is refused with the choices.
func TestNewLogger(t *testing.T) {
	var out bytes.Buffer
	log, err := observe.NewLogger(&out, observe.LogOptions{Format: "json", Level: "warn"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("quiet")
	log.Warn("loud", "request_id", "r-1")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("not one JSON line: %q", out.String())
	}
	if line["msg"] != "loud" || line["request_id"] != "r-1" {
		t.Errorf("line is %v", line)
	}
	for _, o := range []observe.LogOptions{{Format: "xml"}, {Level: "shout"}} {
		if _, err := observe.NewLogger(&out, o); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%+v: error %v, want one that names the choices", o, err)
		}
	}
}

type named struct{ secret string }

func (n named) LogValue() slog.Value { return slog.StringValue("named " + n.secret) }

// DATA-1: a known secret appears in no part of a line.
func TestSecretsAreRedacted(t *testing.T) {
	const secret = "sk-marker-0123456789"
	var out bytes.Buffer
	var r observe.Redactor
	r.Know([]string{"short", secret, secret + "-longer"})
	log, err := observe.NewLogger(&out, observe.LogOptions{Redact: &r})
	if err != nil {
		t.Fatal(err)
	}
	log.With("with", secret).WithGroup("g").Info("message "+secret, "plain", secret, "err", errors.New("bad "+secret),
		slog.Group("in", "deep", secret+"-longer"), "valuer", named{secret}, "n", 7, "kept", "short")
	if strings.Contains(out.String(), "marker") || strings.Contains(out.String(), "-longer") {
		t.Errorf("a secret is in %q", out.String())
	}
	for _, part := range []string{"[redacted]", "g.n=7", "g.kept=short", "g.in.deep=[redacted]"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing in %q", part, out.String())
		}
	}
}

// OBS-4: ids are unique in and across hosts, and safe in a URL.
func TestRequestIDs(t *testing.T) {
	a, _ := observe.NewRequestIDs(rand.Reader)
	b, _ := observe.NewRequestIDs(rand.Reader)
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for _, ids := range []*observe.RequestIDs{a, b, a, b} {
		wg.Go(func() {
			for range 500 {
				id := ids.Next()
				mu.Lock()
				if seen[id] {
					t.Errorf("%s was given out twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id := range seen {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{12,64}$`).MatchString(id) {
			t.Fatalf("id %q", id)
		}
	}
	if _, err := observe.NewRequestIDs(strings.NewReader("few")); err == nil {
		t.Error("too little randomness is accepted")
	}
}

func BenchmarkRequestID(b *testing.B) {
	ids, _ := observe.NewRequestIDs(rand.Reader)
	for b.Loop() {
		ids.Next()
	}
}
