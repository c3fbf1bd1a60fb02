package e2e_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The demo shows every mechanism on a fresh machine, and a second run shows the state that the first one left (OBJ-26, CFG-3,
// CLI-6).
func TestDemo(t *testing.T) {
	t.Parallel()
	g := serve(t, setup{args: []string{"--demo"}})
	t.Run("the printed line works", func(t *testing.T) {
		lines := strings.Split(strings.TrimSpace(g.out.String()), "\n")
		line := lines[len(lines)-1]
		if !strings.HasPrefix(line, "curl ") {
			t.Fatalf("no curl line is printed: %q", line)
		}
		if _, err := exec.LookPath("curl"); err != nil && os.Getenv("CI") == "" {
			t.Skip("there is no curl here")
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
		if err != nil || text(answer{status: 200, body: string(out)}, false) == "" {
			t.Errorf("%s: %v %s", line, err, out)
		}
	})
	g.demoEcho()
	g.demoSlow()
	g.demoFlaky()
	g.demoMisstating()
	g.demoLimited()
}

func (g *gateway) resetDemo() {
	g.t.Helper()
	for _, id := range []string{"demo-a", "demo-b"} {
		if a := g.admin("POST", "/api/providers/"+id+"/reset", ""); a.status != http.StatusOK {
			g.t.Fatalf("%d %s", a.status, a.body)
		}
	}
}

const asked = "How high is the water?" // by question

func (g *gateway) demoEcho() {
	g.t.Helper()
	a := g.chat("demo/echo", false)
	if text(a, false) != asked || a.field("usage", "completion_tokens") != float64((len(asked)+3)/4) && a.field("usage", "completion_tokens") != float64(len(asked)/4) {
		g.t.Errorf("echo: %d %s", a.status, a.body)
	}
	a = g.chat("demo/echo", true)
	if text(a, true) != asked {
		g.t.Errorf("echo: %d %s", a.status, a.body)
	}
	if n := strings.Count(a.body, `"content":`); n < len(strings.Fields(asked)) {
		g.t.Errorf("echo: %d events for %d words: %s", n, len(strings.Fields(asked)), a.body)
	}
}

// demoSlow: the first event after 2 s, then a word every 200 ms.
func (g *gateway) demoSlow() {
	g.t.Helper()
	began := time.Now()
	resp, err := client.Post(g.url+"/v1/chat/completions", "application/json", strings.NewReader(question("demo/slow", true)))
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	var first, last time.Duration
	var whole strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		whole.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"content":"`) {
			last = time.Since(began)
			if first == 0 {
				first = last
			}
		}
	}
	words := time.Duration(len(strings.Fields(asked)))
	if first < 1900*time.Millisecond || first > 3*time.Second || last-first < (words-2)*200*time.Millisecond || streamed(whole.String()) != asked {
		g.t.Errorf("slow: first word after %v, last after %v: %s", first, last, whole.String())
	}
}

// demoFlaky: every odd call, over both connections, is a 503; so a request is answered by its second attempt.
func (g *gateway) demoFlaky() {
	g.t.Helper()
	for _, stream := range []bool{false, true} {
		g.resetDemo()
		a := g.chat("demo/flaky", stream)
		if text(a, stream) != asked || a.header.Get("X-Weir-Attempts") != "2" || a.header.Get("X-Weir-Connection") != "demo-b" {
			g.t.Errorf("flaky stream=%t: %d %v %s", stream, a.status, a.header, a.body)
		}
	}
}

// demoMisstating: demo-a's 403 is a quota that ran out; it is restated, the connection cools, and it still does after a restart.
func (g *gateway) demoMisstating() {
	g.t.Helper()
	g.resetDemo()
	a := g.chat("demo/misstating", true)
	if text(a, true) != asked || a.header.Get("X-Weir-Attempts") != "2" || !strings.HasSuffix(a.header.Get("X-Weir-Restated"), ";from=403") {
		g.t.Errorf("misstating: %d %v %s", a.status, a.header, a.body)
	}
	if a := g.chat("demo/misstating", false); text(a, false) != asked || a.header.Get("X-Weir-Attempts") != "" {
		g.t.Errorf("misstating, second request: %d %v %s", a.status, a.header, a.body)
	}
	before := g.admin("GET", "/api/providers/demo-a", "")
	if before.field("connection", "health", "status") != "cooling_down" || before.field("connection", "health", "lastErrorType") != "quota_exhausted" ||
		before.field("connection", "managedBy") != "demo" {
		g.t.Errorf("misstating: %s", before.body)
	}
	time.Sleep(100 * time.Millisecond)
	old := g.url
	*g = *g.again(setup{args: []string{"--demo"}})
	if g.url == "" || g.url == old {
		g.t.Log("the same port again")
	}
	after := g.admin("GET", "/api/providers/demo-a", "")
	if after.field("connection", "health", "rateLimitedUntil") != before.field("connection", "health", "rateLimitedUntil") {
		g.t.Errorf("after the restart: %s, before %s", after.body, before.body)
	}
	if s := g.weir("explain", "demo/misstating"); !strings.Contains(s.out, "left out by connection_cooldown: quota_exhausted") || !strings.Contains(s.out, "demo/") {
		g.t.Errorf("explain: %s%s", s.out, s.err)
	}
}

// demoLimited: two calls per connection in ten seconds, then 429 with the time to the end of the window.
func (g *gateway) demoLimited() {
	g.t.Helper()
	g.resetDemo()
	if a := g.admin("PATCH", "/api/resilience", `{"waitForCooldown":{"enabled":false}}`); a.status != http.StatusOK { // else the third waits, and is answered
		g.t.Fatalf("%d %s", a.status, a.body)
	}
	for i := range 4 {
		if a := g.chat("demo/limited", i%2 == 0); text(a, i%2 == 0) != asked {
			g.t.Fatalf("limited %d: %d %s", i, a.status, a.body)
		}
	}
	for i := range 2 {
		a := g.chat("demo/limited", i%2 == 0)
		after, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != http.StatusTooManyRequests || err != nil || after < 1 || after > 10 {
			g.t.Errorf("limited, refusal %d: %d %v %s", i, a.status, a.header, a.body)
		}
		if code := fmt.Sprint(a.field("error", "code")); i == 1 && code != "model_cooldown" {
			g.t.Errorf("limited, refusal %d: %s", i, code)
		}
	}
}
