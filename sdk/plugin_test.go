package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/sdk/wire"
)

// fill sets every field that v reaches, so that a field that a writer forgets shows.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[wire.Raw]() {
			v.SetBytes([]byte(fmt.Sprint(*n)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(value, n)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	}
}

func describe(p *Plugin) []byte {
	w := &Writer{}
	p.describe(w)
	return w.Bytes()
}

// The writers by hand know every field of the documents (ABI-12).
func TestManifestIsComplete(t *testing.T) {
	var want wire.Manifest
	n := 0
	fill(reflect.ValueOf(&want).Elem(), &n)
	p := Plugin{
		Name: want.Name, Version: want.Version, Summary: want.Summary, License: want.License, Homepage: want.Homepage,
		Matches: want.Matches, Priority: want.Priority, Needs: want.Needs, Entries: want.Providers, Plans: want.Plans,
		Permissions: want.Permissions, Limits: want.Limits, ConfigSchema: string(want.ConfigSchema),
	}
	var got wire.Manifest
	if err := json.Unmarshal(describe(&p), &got); err != nil {
		t.Fatalf("%v in %s", err, describe(&p))
	}
	// What the sdk states by itself.
	want.ABI, want.Kinds, want.Hooks, want.Rules, want.Examples = "1.0", []string{"executor"}, nil, nil, nil
	want.Prices = nil // packs alone carry them (OBJ-21)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a, b := string(describe(&p)), string(describe(&p)); a != b {
		t.Error("ABI-2: describe answers differently the second time")
	}
}

// acme is the plugin of ABI-12.
func acme() Plugin {
	sure, no := 90, false
	return Plugin{
		Name: "acme", Version: "1.0.0", Providers: []string{"acme", "acme-*"}, ErrorText: Full, Headers: []string{"x-a"},
		Restate: Rules{
			{Status: S(403), TextContains: []string{"quota"}, To: 429, ToCode: "rate_limit_exceeded",
				RetryAfter: FromText(`try again in ([0-9.]+)s`, Seconds)},
			{Status: append(S(200), Range(500, 599)...), JSON: Path("error.code").Equals("overloaded"), To: 503},
		},
		Classify: Rules{
			{ID: "credits", Code: []string{"insufficient_credits"}, Reason: CreditsExhausted, Scope: Connection, Fallback: true},
			{Status: S(404), TextMatches: []string{`model .* not found`}, Reason: ModelNotFound, Scope: Model, NoFallback: true, CooldownMS: 60_000,
				Header: Header("x-a").Absent(), Confidence: &sure, Breaker: &no, RetryAfter: FromHint().Required()},
		},
		OnClassify: func(e *Failure) *Verdict {
			reset, ok := e.JSON("quota.weekly.reset_epoch").Int()
			if !ok {
				return nil
			}
			return &Verdict{Reason: QuotaExhausted, Scope: Connection, Fallback: true, ResetAtMS: reset * 1000}
		},
		Plan: func(r *PlanRequest) *Plan {
			if r.UpstreamModel == "none" {
				return NoPlan(Unsupported, "no such model")
			}
			return POST("{{connection.base_url}}/chat/completions").Dialect(OpenAIChat)
		},
		Examples: Examples{
			{Restate: Err(403, "quota reached, try again in 20s"), Want: Status(429).RetryAfter(20_000)},
			{Restate: Err(403, "forbidden"), Want: Keep},
			{Classify: Err(429, `{"quota":{"weekly":{"reset_epoch":1790000000}}}`), Want: Reason(QuotaExhausted)},
			{Plan: Req("acme", "large").Streaming(), Want: PlanURL("{{connection.base_url}}/chat/completions")},
		},
	}
}

func TestDescribe(t *testing.T) { // ABI-2, ABI-2.1, ABI-12
	p := acme()
	var m wire.Manifest
	if err := json.Unmarshal(describe(&p), &m); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(m.Kinds, m.Hooks, m.Matches[0].Providers) != "[executor restatement classifier] [plan classify] [acme acme-*]" {
		t.Errorf("%v %v %v", m.Kinds, m.Hooks, m.Matches)
	}
	const rules = `[{"id":"restate-1","status":[403],"text_contains":["quota"],"then":{"restate_status":429,"restate_code":"rate_limit_exceeded","retry_after":{"from":"text","match":"try again in ([0-9.]+)s","unit":"s"}}},` +
		`{"id":"restate-2","status":[200,"500-599"],"json":[{"path":"error.code","equals":"overloaded"}],"then":{"restate_status":503}},` +
		`{"id":"credits","code":["insufficient_credits"],"then":{"reason":"credits_exhausted","scope":"connection","fallback":true}},` +
		`{"id":"classify-2","status":[404],"text_matches":["model .* not found"],"header":[{"name":"x-a","present":false}],"then":{"reason":"model_not_found","scope":"model","fallback":false,"cooldown":"60s","count_for_breaker":false,"confidence":90,"retry_after":{"from":"hint","required":true}}}]`
	if diff := cmp.Diff(rules, string(m.Rules)); diff != "" {
		t.Error(diff)
	}
	if x := m.Examples[0]; x.Op != "restate" || string(x.Expect) != `{"status":429,"retry_after_ms":20000}` || !strings.Contains(string(x.Input), `"provider":"acme"`) {
		t.Errorf("%+v %s", x, x.Input)
	}
	if x := m.Examples[1]; string(x.Expect) != "null" {
		t.Errorf("expect %s", x.Expect)
	}
}

func TestCalls(t *testing.T) { // ABI-1
	p := acme()
	for _, c := range []struct {
		op        wire.Op
		in, wants string
	}{
		{wire.OpPlan, `{"upstream_model":"none"}`, `{"error":{"code":"unsupported","message":"no such model"}}`},
		{wire.OpPlan, `{}`, `{"method":"POST","url":"{{connection.base_url}}/chat/completions","dialect":"openai_chat"}`},
		{wire.OpClassify, `{"error":{"text":"{\"quota\":{\"weekly\":{\"reset_epoch\":7}}}"}}`, `{"reason":"quota_exhausted","scope":"connection","fallback":true,"reset_at_ms":7000}`},
		{wire.OpClassify, `{}`, ""},
		{wire.OpRestate, `{}`, ""},
		{wire.OpRespond, `{}`, ""},
		{99, `{}`, ""},
		{wire.OpClassify, `not json`, ""},
	} {
		m := machine{plugin: &p}
		if got := string(m.call(c.op, []byte(c.in))); got != c.wants {
			t.Errorf("%s of %s: %s, want %s", c.op, c.in, got, c.wants)
		}
	}
}

// heard is a TB that remembers what it was told.
type heard struct{ errors []string }

func (h *heard) Helper() {}
func (h *heard) Errorf(format string, a ...any) {
	h.errors = append(h.errors, fmt.Sprintf(format, a...))
}

func TestRunExamples(t *testing.T) { // ABI-12
	p := acme()
	var h heard
	p.run(&h)
	if len(h.errors) != 0 {
		t.Errorf("%q", h.errors)
	}
	for _, c := range []struct {
		name string
		x    Example
		want string
	}{
		{"a plan", Example{Plan: Req("acme", "large"), Want: PlanURL("https://elsewhere")}, `url is "{{connection.base_url}}/chat/completions", expected "https://elsewhere"`},
		{"a plan where none is expected", Example{Plan: Req("acme", "large"), Want: Keep}, "expected null"},
		{"a refused plan", Example{Plan: Req("acme", "none"), Want: Declined(Unsupported)}, ""},
		{"no input", Example{Want: Keep}, "no input"},
		{"a table", Example{Restate: Err(403, "quota reached"), Want: Status(503)}, "status is 429, expected 503"},
		{"a time of a table", Example{Restate: Err(403, "quota reached, try again in 21s"), Want: Status(429).RetryAfter(20_000)}, "retry_after_ms is 21000"},
		{"the first rule", Example{Classify: Err(402, `{"error":{"code":"insufficient_credits"}}`), Want: Reason(CreditsExhausted).JSON("rule", `"credits"`)}, ""},
		{"the function after the table", Example{Classify: Err(429, `{"quota":{"weekly":{"reset_epoch":1790000000}}}`), NowMS: 1_789_999_940_000, Want: Reason(QuotaExhausted).RetryAfter(60_000)}, ""},
	} {
		p.Examples = Examples{c.x}
		h = heard{}
		p.run(&h)
		if c.want == "" && len(h.errors) > 0 || c.want != "" && (len(h.errors) != 1 || !strings.Contains(h.errors[0], c.want)) {
			t.Errorf("%s: %q, want %q", c.name, h.errors, c.want)
		}
	}
	p.Classify = append(p.Classify, Rule{ID: "bad", TextMatches: []string{"("}, Reason: Unknown})
	h = heard{}
	if p.run(&h); len(h.errors) != 1 || !strings.Contains(h.errors[0], "rule bad") {
		t.Errorf("a rule that the gateway refuses passes: %q", h.errors)
	}
}

func TestHostFunctionsNatively(t *testing.T) { // ABI-6
	ResetHost(7)
	if _, err := KVGet("a"); err != ErrNotFound || NowMS() != 7 {
		t.Error("the host is not fresh")
	}
	if n, err := KVAdd("n", 2, 0); err != nil || n != 2 {
		t.Errorf("add %d", n)
	}
	if err := KVSet("a", []byte("x"), 0); err != nil {
		t.Error(err)
	}
	if b, err := KVGet("a"); err != nil || string(b) != "x" {
		t.Errorf("get %q", b)
	}
	for err, want := range map[error]error{
		KVSet("", nil, 0):                     ErrInvalid,
		KVSet("k", make([]byte, 64<<10+1), 0): ErrTooLarge,
		Random(make([]byte, 257)):             ErrTooLarge,
		Metric("m", 1):                        ErrDenied,
	} {
		if err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if _, err := HTTPFetch(Fetch{URL: "https://x"}); err != ErrDenied {
		t.Errorf("examples reach the network: %v", err)
	}
	f := Fetch{Method: "PUT", URL: "https://a/b", Headers: map[string]string{"x": "{{secret.k}}"}, Body: "b", TimeoutMS: 9}
	if got := string(f.json()); got != `{"method":"PUT","url":"https://a/b","headers":{"x":"{{secret.k}}"},"body":"b","timeout_ms":9}` {
		t.Error(got)
	}
	if a, err := fetched([]byte(`{"status":200,"headers":{"a":"b"},"body":"{\"n\":7}"}`)); err != nil || a.Status != 200 || a.Headers["a"] != "b" || string(a.JSON("n").Raw()) != "7" {
		t.Errorf("%+v %v", a, err)
	}
}
