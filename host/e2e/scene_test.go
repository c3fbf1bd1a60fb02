package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/host/e2e/scripted"
	"github.com/weirgate/weir/store/memory"
)

// scene is one run of a scenario: a gateway and its scripted upstream, told by a file what happens. Its directives are
//
//	config [binary]            input: weir.yaml, with UPSTREAM for the address; in-process with a clock of its own, or the program
//	upstream                   input: a script, see package scripted
//	send model= [times=] [every=] [parallel=] [show=(..)] [within=..]
//	                           requests, and what came: statuses, and the upstream's hits by key
//	pass for=                  time passes
//	health connection=         the health of a connection; times count from the start
//	breaker provider=          the state of a breaker
//	lockouts                   the running ones
//	admin method= path= [show=(..)]  input: a body; a management call
//	explain model=             what would be tried, and what is left out by which gate
//	restart                    the gateway is started anew on its state; the program is killed as by kill -9
type scene struct {
	t      *testing.T
	up     *scripted.Upstream
	at     string // the upstream's address
	stream bool
	begun  time.Time
	g      *gateway // where requests go
	setup  setup
	binary bool
	stop   func() // ends the gateway in this process
	anew   func() // starts it on the same store

	mu  sync.Mutex
	now time.Time // of the gateway in this process; guarded by mu
}

func newScene(t *testing.T, stream bool) *scene {
	s := &scene{t: t, stream: stream, now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	s.begun = s.now
	s.up = scripted.New(s.clock)
	srv := httptest.NewServer(s.up)
	s.at = srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return s
}

// clock is the time that gateway and upstream share.
func (s *scene) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.binary {
		return time.Now()
	}
	return s.now
}

func (s *scene) pass(d time.Duration) {
	if s.binary {
		time.Sleep(d)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// play runs one file.
func (s *scene) play(path string) {
	datadriven.RunTest(s.t, path, func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		switch d.Cmd {
		case "config":
			s.config(d)
		case "upstream":
			read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(path), name)) }
			if err := s.up.Script(d.Input, read); err != nil {
				d.Fatalf(t, "%v", err)
			}
		case "send":
			return s.send(d)
		case "pass":
			s.pass(s.duration(d, "for"))
		case "health":
			return s.health(word(d, "connection"))
		case "breaker":
			return s.breaker(word(d, "provider"))
		case "lockouts":
			return s.lockouts()
		case "admin":
			a := s.g.admin(word(d, "method"), word(d, "path"), d.Input)
			return s.shown(a, list(d, "show")) + "\n"
		case "explain":
			return s.explain(word(d, "model"))
		case "restart":
			if !s.binary {
				s.stop()
				s.anew()
				break
			}
			time.Sleep(100 * time.Millisecond) // events may be 50 ms late (OV-8)
			s.g = s.g.again(s.setup)
		default:
			d.Fatalf(t, "there is no directive %s", d.Cmd)
		}
		return ""
	})
}

// config starts the gateway.
func (s *scene) config(d *datadriven.TestData) {
	text := strings.ReplaceAll(d.Input, "UPSTREAM", s.at)
	if d.HasArg("binary") {
		s.binary, s.setup = true, setup{config: text}
		s.g = serve(s.t, s.setup)
		s.begun = time.Now() // what it took to start does not count
		return
	}
	file := filepath.Join(s.t.TempDir(), "weir.yaml")
	write(s.t, file, text)
	st := memory.New(memory.Options{Now: s.clock})
	s.anew = func() { s.begin(file, st) }
	s.anew()
	s.t.Cleanup(func() {
		s.stop()
		_ = st.Close() // it holds nothing that anybody reads again
	})
}

// begin starts a gateway in this process.
func (s *scene) begin(file string, st *memory.Store) {
	const key = "an-admin-key-for-scenarios"
	h, err := host.New(s.t.Context(), host.Options{
		ConfigFile: file, Listen: host.NoListener, Store: st, Now: s.clock,
		Env: func(name string) (string, bool) {
			value, ok := map[string]string{"WEIR_ADMIN_KEY": key, "WEIR_SECRET_KEY": strings.Repeat("A", 43) + "="}[name]
			return value, ok
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	srv := httptest.NewServer(h.Handler())
	s.stop = sync.OnceFunc(func() {
		srv.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.Stop(ctx); err != nil {
			s.t.Error(err)
		}
	})
	s.g = &gateway{t: s.t, url: srv.URL, env: []string{"WEIR_ADMIN_KEY=" + key}}
}

// send makes requests and tells what came.
func (s *scene) send(d *datadriven.TestData) string {
	model, times, parallel := word(d, "model"), number(d, "times", 1), number(d, "parallel", 1)
	every := time.Duration(0)
	if d.HasArg("every") {
		every = s.duration(d, "every")
	}
	show := list(d, "show")
	s.up.Hits()
	var mu sync.Mutex
	came := map[string]int{}
	one := func() {
		a := s.g.chat(model, s.stream)
		mu.Lock()
		defer mu.Unlock()
		came[s.shown(a, show)]++
	}
	began := time.Now()
	for range times {
		var wg sync.WaitGroup
		for range parallel {
			wg.Go(one)
		}
		wg.Wait()
		s.pass(every)
	}
	took := time.Since(began)
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(came)) {
		if came[what] > 1 {
			fmt.Fprintf(&b, "%d x ", came[what])
		}
		b.WriteString(what + "\n")
	}
	fmt.Fprintf(&b, "hits: %s\n", scripted.Summary(s.up.Hits()))
	if d.HasArg("within") {
		b.WriteString(within(took, word(d, "within")) + "\n")
	}
	return b.String()
}

// within says whether a length lies in a range such as 1s..3s.
func within(took time.Duration, text string) string {
	low, high, _ := strings.Cut(text, "..")
	from, err := time.ParseDuration(low)
	to, err2 := time.ParseDuration(high)
	if err != nil || err2 != nil {
		return "within needs a range such as 1s..3s"
	}
	if took < from || took > to {
		return fmt.Sprintf("took %v, not %s", took, text)
	}
	return "took " + text
}

// shown is the status of an answer and the values that are asked for: header names begin with a capital, others are paths
// of the body.
func (s *scene) shown(a answer, show []string) string {
	text1 := fmt.Sprint(a.status)
	if a.status == http.StatusOK && strings.Contains(a.body, "choices") {
		if said := text(a, s.stream); said != scripted.Text {
			text1 += " broken"
		}
	}
	for _, name := range show {
		value := a.header.Get(name)
		if name[0] < 'A' || name[0] > 'Z' {
			value = strings.Trim(jsonText(a.field(strings.Split(name, ".")...)), `"`)
		}
		text1 += " " + name + "=" + value
	}
	return text1
}

// since writes a time of the API as its distance from the start of the scene; - for none. The program's clock is not ours, so
// there it is rounded to seconds.
func (s *scene) since(v any) string {
	text, _ := v.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "-"
	}
	return "+" + (at.Sub(s.begun) + 50*time.Millisecond).Truncate(time.Second).String() // what the request itself took does not count
}

func (s *scene) health(connection string) string {
	a := s.g.admin("GET", "/api/providers/"+connection, "")
	h := func(names ...string) any { return a.field(append([]string{"connection", "health"}, names...)...) }
	or := func(v any) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprint(v)
	}
	out := fmt.Sprintf("%s %s until=%s", or(h("status")), or(h("testStatus")), s.since(h("rateLimitedUntil")))
	for _, more := range []struct{ name, value string }{
		{"probe", s.since(h("nextProbeAt"))}, {"recheck", s.since(h("recheckAt"))}, {"level", or(h("backoffLevel"))},
		{"reason", or(h("lastErrorType"))}, {"source", or(h("cause", "source"))}, {"rule", or(h("cause", "rule"))},
	} {
		if more.value != "-" && more.value != "0" {
			out += " " + more.name + "=" + more.value
		}
	}
	return out + "\n"
}

func (s *scene) breaker(provider string) string {
	var v struct {
		Breakers []struct {
			State          string
			FailureCount   int
			RetryAfterMs   int64
			OpenCycleCount int
		}
	}
	a := s.g.admin("GET", "/api/resilience/connections?provider="+provider, "")
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || len(v.Breakers) == 0 {
		return "none\n"
	}
	b := v.Breakers[0]
	return fmt.Sprintf("%s failures=%d cycles=%d retry=%v\n", b.State, b.FailureCount, b.OpenCycleCount, (time.Duration(b.RetryAfterMs) * time.Millisecond).Round(time.Second))
}

func (s *scene) lockouts() string {
	var v struct {
		Items []struct {
			ConnectionID, Model, Reason, Scope string
			ExpiresAt                          string
			FailureCount                       int
		}
	}
	a := s.g.admin("GET", "/api/resilience/model-cooldowns", "")
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || len(v.Items) == 0 {
		return "none\n"
	}
	var b strings.Builder
	for _, l := range v.Items {
		fmt.Fprintf(&b, "%s %s %s %s until=%s failures=%d\n", l.ConnectionID, l.Model, l.Scope, l.Reason, s.since(l.ExpiresAt), l.FailureCount)
	}
	return b.String()
}

func (s *scene) explain(model string) string {
	var v struct {
		Candidates []struct {
			ConnectionID, Model, Verdict string
			Gate, Reason, Until          *string
			NextProbeAt                  *string
			Cause                        *struct {
				Status int
				Rule   string
			}
		}
	}
	a := s.g.admin("POST", "/api/resilience/explain", fmt.Sprintf(`{"model":%q}`, model))
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		return a.body + "\n"
	}
	var b strings.Builder
	at := func(p *string) string {
		if p == nil {
			return "-"
		}
		return s.since(*p)
	}
	for _, c := range v.Candidates {
		fmt.Fprintf(&b, "%s %s %s", c.ConnectionID, c.Model, c.Verdict)
		if c.Gate != nil && c.Reason != nil {
			fmt.Fprintf(&b, " %s %s until=%s probe=%s", *c.Gate, *c.Reason, at(c.Until), at(c.NextProbeAt))
		}
		if c.Cause != nil {
			fmt.Fprintf(&b, " for %d by %s", c.Cause.Status, c.Cause.Rule)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func word(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) == 1 {
			return a.Vals[0]
		}
	}
	return ""
}

func list(d *datadriven.TestData, name string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return a.Vals
		}
	}
	return nil
}

func number(d *datadriven.TestData, name string, without int) int {
	n := without
	if text := word(d, name); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			return without
		}
	}
	return n
}

func (s *scene) duration(d *datadriven.TestData, name string) time.Duration {
	v, err := time.ParseDuration(word(d, name))
	if err != nil {
		s.t.Fatalf("%s: %s: %v", d.Pos, name, err)
	}
	return v
}

// scenarios plays files plain and streamed; both must come out as the file says.
func scenarios(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, stream := range []bool{false, true} {
			kind := map[bool]string{false: "plain", true: "streamed"}[stream]
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				newScene(t, stream).play(filepath.Join("testdata", "scenarios", name+".txt"))
			})
		}
	}
}
