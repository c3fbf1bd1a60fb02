package settings

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/document"
)

var update = flag.Bool("update", false, "rewrite docs/settings.md")

func environment(pairs ...string) Lookup {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func inForce() *Values {
	v, _, _ := Resolve(environment(), nil, nil)
	return v
}

func parse(t *testing.T, text string) *document.Node {
	t.Helper()
	n, faults := document.ParseJSON("body", []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return n
}

// The defaults are those of the specification: COOL-10, COOL-24, BRK-3, BRK-4, PCD-1, PCD-2, PCD-5, COOL-70, CMB-40, LOCK-10,
// SEL-3, SEL-4, SEL-11, COOL-32, STM-1, CMB-26, OBS-5, OBJ-19, COOL-59, COOL-63, CLS-20.
func TestDefaults(t *testing.T) {
	v, sources, warnings := Resolve(environment(), nil, nil)
	want := &Values{
		ConnectionCooldown: Cooldown{
			OAuth:  CooldownProfile{Base: 5 * time.Second, MaxSteps: 8},
			APIKey: CooldownProfile{Base: 3 * time.Second, MaxSteps: 5, UseHints: true},
			Local:  CooldownProfile{Base: 2 * time.Second, MaxSteps: 3},
		},
		MaxCooldown:          30 * time.Minute,
		RouteDefaults:        RouteDefaults{FallbackOnOverflow: true, StreamRecovery: "off", EncryptedState: "strip"},
		ExposeRoutingHeaders: "auto",
		FetchTimeout:         10 * time.Minute, BodyTimeout: 10 * time.Minute, ConnectTimeout: 30 * time.Second,
		StreamIdleTimeout: 10 * time.Minute, ReadinessTimeout: 80 * time.Second, AttemptDeadline: 30 * time.Minute,
		CompatHeaders: true, CustomBannedSignals: []string{},
		ProviderBreaker: ProviderBreaker{
			OAuth:  BreakerProfile{FailureThreshold: 8, DegradationThreshold: 5, ResetTimeout: time.Minute, ImmediateOpen: []string{}},
			APIKey: BreakerProfile{FailureThreshold: 12, DegradationThreshold: 7, ResetTimeout: 30 * time.Second, ImmediateOpen: []string{}},
			Local:  BreakerProfile{FailureThreshold: 2, DegradationThreshold: 1, ResetTimeout: 15 * time.Second, ImmediateOpen: []string{}},
		},
		ProviderCooldown: ProviderCooldown{
			MinRetry: 5 * time.Second, MaxRetry: 5 * time.Minute,
			OAuth:  WindowProfile{Threshold: 10, Window: 15 * time.Minute, Cooldown: 5 * time.Minute},
			APIKey: WindowProfile{Threshold: 15, Window: 30 * time.Minute, Cooldown: 10 * time.Minute},
			Local:  WindowProfile{Threshold: 2, Window: 5 * time.Minute, Cooldown: time.Minute},
		},
		CooldownProbe: CooldownProbe{Enabled: true, First: time.Minute, Max: time.Hour},
		ModelLockout: ModelLockout{
			ErrorCodes: []int{403, 404, 429, 502, 503, 504}, Base: 2 * time.Minute, Max: 30 * time.Minute, MaxSteps: 10,
			Exponential: true, Persist: true, Zone: time.UTC,
		},
		WaitForCooldown:        WaitForCooldown{Enabled: true, MaxRetries: 5, MaxRetryWait: 90 * time.Second, Budget: 5 * time.Minute},
		ComboCooldownWait:      ComboCooldownWait{Enabled: true, MaxWait: 90 * time.Second, MaxAttempts: 5, Budget: 5 * time.Minute},
		ProviderQuotaOverrides: map[string]QuotaOverride{}, ProviderStrategies: map[string]string{},
		FallbackStrategy: "fill-first", StickyRoundRobinLimit: 3, CredentialCheckInterval: time.Hour,
		ErrorRecord:  ErrorRecord{Enabled: true, RetentionDays: 14, MaxRows: 5000, MaxBodyBytes: 65536},
		RequestLog:   RequestLog{Enabled: true, RetentionDays: 7, MaxRows: 100_000},
		Emergency:    Emergency{Enabled: true, Provider: "nvidia", Model: "openai/gpt-oss-120b", MaxOutput: 4096},
		ReadinessMax: 3 * time.Minute, ContentStall: -time.Millisecond, Heartbeat: 15 * time.Second,
		StreamRecovery:     StreamRecovery{Throughput: ThroughputWatchdog{Warmup: 30 * time.Second, Window: 30 * time.Second, MinRate: 4, MinBytes: 1}},
		Streams:            Streams{EarlyKeepalive: 15 * time.Second, MaxEventBytes: 16 << 20, HoldMaxBytes: 4 << 20},
		ProviderErrorRules: json.RawMessage("{}"), ProviderErrorDefaults: json.RawMessage("{}"),
		ExecutionMaxWait: 10 * time.Minute,
		Rotation: Rotation{
			Enabled: true, On400: RotationClass{false, 1, 2 * time.Minute},
			On429: RotationClass{true, 1, 2 * time.Minute}, On500: RotationClass{true, 1, 2 * time.Minute}, On502: RotationClass{true, 1, 2 * time.Minute},
		},
		ToolTruncate: true,
	}
	if d := cmp.Diff(want, v, cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })); d != "" {
		t.Error(d)
	}
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	for name, source := range sources {
		if source != FromDefault {
			t.Errorf("%s comes from %s", name, source)
		}
	}
}

// Every field of Values has its row, and every row its own field: a row without one would be a setting that nothing reads.
func TestTableCoversValues(t *testing.T) {
	v := &Values{}
	seen := map[any]string{}
	for _, r := range Table() {
		p := r.at(v)
		if other, ok := seen[p]; ok {
			t.Errorf("%s and %s set the same field", r.Name(), other)
		}
		seen[p] = r.Name()
		if r.Meaning == "" || (r.Path == "") != (len(r.Docs) == 0) {
			t.Errorf("row %s is incomplete", r.Name())
		}
		if reflect.ValueOf(p).IsNil() {
			t.Errorf("row %s has no field", r.Name())
		}
	}
	if got := leaves(reflect.TypeFor[Values]()); got != len(seen)+1 { // MaxCooldown is the same as ModelLockout.Max
		t.Errorf("Values has %d fields and the table %d rows", got, len(seen))
	}
}

func leaves(t reflect.Type) int {
	if t.Kind() != reflect.Struct {
		return 1
	}
	sum := 0
	for i := range t.NumField() {
		sum += leaves(t.Field(i).Type)
	}
	return sum
}

func TestPrecedence(t *testing.T) {
	t.Run("OV-20 OBJ-16 default, env, stored, file", func(t *testing.T) {
		env := environment("WEIR_EXPOSE_CONNECTION", "on")
		stored := Stored{"exposeRoutingHeaders": json.RawMessage(`"off"`)}
		file := Stored{"exposeRoutingHeaders": json.RawMessage(`"auto"`)}
		for _, tc := range []struct {
			env          Lookup
			stored, file Stored
			value        string
			source       Source
		}{
			{environment(), nil, nil, "auto", FromDefault},
			{env, nil, nil, "on", FromEnv},
			{env, stored, nil, "off", FromStored},
			{env, stored, file, "auto", FromFile},
		} {
			v, sources, _ := Resolve(tc.env, tc.stored, tc.file)
			if v.ExposeRoutingHeaders != tc.value || sources["exposeRoutingHeaders"] != tc.source {
				t.Errorf("got %s from %s, want %s from %s", v.ExposeRoutingHeaders, sources["exposeRoutingHeaders"], tc.value, tc.source)
			}
		}
	})
	t.Run("STM-1 REQUEST_TIMEOUT_MS sets three together, body follows fetch", func(t *testing.T) {
		v, _, warnings := Resolve(environment("REQUEST_TIMEOUT_MS", "2000", "STREAM_IDLE_TIMEOUT_MS", "9000"), nil, nil)
		got := []time.Duration{v.FetchTimeout, v.BodyTimeout, v.ReadinessTimeout, v.StreamIdleTimeout, v.ConnectTimeout}
		want := []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, 9 * time.Second, 30 * time.Second}
		if d := cmp.Diff(want, got); d != "" || len(warnings) > 0 {
			t.Error(d, warnings)
		}
	})
}

func TestEnvironment(t *testing.T) {
	compat := func(text string) (bool, []string) {
		v, _, warnings := Resolve(environment("WEIR_COMPAT_HEADERS", text), nil, nil)
		return v.CompatHeaders, warnings
	}
	t.Run("OV-13 booleans", func(t *testing.T) {
		for _, text := range []string{"true", "1", "YES", " on "} {
			if got, warnings := compat(text); !got || len(warnings) > 0 {
				t.Errorf("%q is %v %v", text, got, warnings)
			}
		}
		for _, text := range []string{"false", "0", "No", "\toff"} {
			if got, warnings := compat(text); got || len(warnings) > 0 {
				t.Errorf("%q is %v %v", text, got, warnings)
			}
		}
		got, warnings := compat("maybe")
		if !got || len(warnings) != 1 || !strings.Contains(warnings[0], "WEIR_COMPAT_HEADERS") || !strings.Contains(warnings[0], "maybe") {
			t.Errorf("a bad value gives %v with %q", got, warnings)
		}
	})
	t.Run("OV-12 WEIR_ before OMNIROUTE_", func(t *testing.T) {
		v, _, warnings := Resolve(environment("OMNIROUTE_COMPAT_HEADERS", "off"), nil, nil)
		if v.CompatHeaders || len(warnings) > 0 {
			t.Error("the old name is not read", warnings)
		}
		v, _, warnings = Resolve(environment("OMNIROUTE_COMPAT_HEADERS", "off", "WEIR_COMPAT_HEADERS", "on"), nil, nil)
		if !v.CompatHeaders || len(warnings) != 1 {
			t.Errorf("both set: %v with %q", v.CompatHeaders, warnings)
		}
		if _, _, warnings = Resolve(environment("OMNIROUTE_COMPAT_HEADERS", "on", "WEIR_COMPAT_HEADERS", "on"), nil, nil); len(warnings) > 0 {
			t.Errorf("equal values warn: %q", warnings)
		}
	})
	t.Run("OV-14 STM-1 bad numbers keep the default", func(t *testing.T) {
		for _, text := range []string{"NaN", "Inf", "-1", "0", "2147483648", "1.5", "soon"} {
			v, _, warnings := Resolve(environment("FETCH_TIMEOUT_MS", text), nil, nil)
			if v.FetchTimeout != 10*time.Minute || len(warnings) != 1 || !strings.Contains(warnings[0], "FETCH_TIMEOUT_MS") {
				t.Errorf("%s gives %v with %q", text, v.FetchTimeout, warnings)
			}
		}
		v, _, warnings := Resolve(environment("WEIR_ATTEMPT_DEADLINE_MS", "0"), nil, nil)
		if v.AttemptDeadline != 0 || len(warnings) > 0 {
			t.Error("0 does not switch the deadline off", warnings)
		}
	})
}

func TestStored(t *testing.T) {
	t.Run("OV-22 a boolean of another type is not set", func(t *testing.T) {
		v, sources, warnings := Resolve(environment(), Stored{"autoDisableBannedAccounts": json.RawMessage(`"true"`)}, nil)
		if v.AutoDisableBanned || sources["autoDisableBannedAccounts"] != FromDefault || len(warnings) != 1 {
			t.Error(v.AutoDisableBanned, sources["autoDisableBannedAccounts"], warnings)
		}
	})
	t.Run("API-14 stored numbers are clamped", func(t *testing.T) {
		v, _, warnings := Resolve(environment(), Stored{"connectionCooldown.local.maxBackoffSteps": json.RawMessage(`99`)}, nil)
		if v.ConnectionCooldown.Local.MaxSteps != 32 || len(warnings) != 1 {
			t.Error(v.ConnectionCooldown.Local.MaxSteps, warnings)
		}
	})
	t.Run("an unknown name is a warning", func(t *testing.T) {
		if _, _, warnings := Resolve(environment(), Stored{"x.y": json.RawMessage(`1`)}, nil); len(warnings) != 1 {
			t.Error(warnings)
		}
	})
}

func TestDocuments(t *testing.T) {
	file := Stored{"modelLockout.maxCooldownMs": json.RawMessage("600000")}
	v, sources, _ := Resolve(environment("WEIR_EXPOSE_CONNECTION", "1", "WEIR_PROVIDER_BREAKER_LOCAL_COOLDOWN_MS", "7000"), nil, file)
	t.Run("API-10 sections in their order", func(t *testing.T) {
		n := parse(t, string(Document(v, Resilience)))
		var got []string
		for i := range n.Members {
			got = append(got, n.Members[i].Name)
		}
		want := []string{
			"connectionCooldown", "providerBreaker", "waitForCooldown", "comboCooldownWait", "streamStallCooldown", "streamRecovery", "streams", "routeDefaults",
			"providerCooldown", "providerQuotaOverrides", "p2cLatency", "modelLockout", "credentialHealthCheck", "legacy",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		section := func(name, want string) {
			if d := cmp.Diff(want, string(n.Member(name).JSON())); d != "" {
				t.Error(name, d)
			}
		}
		section("waitForCooldown", `{"enabled":true,"maxRetries":5,"maxRetryWaitSec":90,"budgetMs":300000}`)
		section("comboCooldownWait", `{"enabled":true,"maxWaitMs":90000,"maxAttempts":5,"budgetMs":300000}`)
		section("streams", `{"earlyKeepaliveMs":15000,"maxEventBytes":16777216,"holdMaxBytes":4194304}`)                                                                                                 // STM-65
		section("streamRecovery", `{"enabled":false,"continueMidStream":false,"throughputWatchdog":{"enabled":false,"warmupMs":30000,"windowMs":30000,"minUsefulBytesPerSecond":4,"minUsefulBytes":1}}`) // STM-30
		section("modelLockout", `{"enabled":false,"errorCodes":[403,404,429,502,503,504],"baseCooldownMs":120000,"maxCooldownMs":600000,`+
			`"maxBackoffSteps":10,"useExponentialBackoff":true}`)
		local := `{"failureThreshold":2,"degradationThreshold":1,"resetTimeoutMs":15000,` +
			`"kindThresholds":{"rate_limit":null,"quota_exhausted":null,"transient":null},"immediateOpen":[]}`
		if got := string(n.Member("providerBreaker").Member("local").JSON()); got != local {
			t.Error("BRK-6", got)
		}
		gate := `{"providerFailureThreshold":2,"providerFailureWindowMs":300000,"providerCooldownMs":7000}`
		if got := string(n.Member("providerCooldown").Member("profiles").Member("local").JSON()); got != gate {
			t.Error("PCD-11", got)
		}
	})
	t.Run("API-15 OV-25 the general document explained", func(t *testing.T) {
		n := parse(t, string(Explain(v, sources, General)))
		for path, want := range map[string]string{
			"exposeRoutingHeaders": `{"value":"on","source":"env"}`, "autoDisableBannedAccounts": `{"value":false,"source":"default"}`,
			"customBannedSignals": `{"value":[],"source":"default"}`, "providerErrorRules": `{"value":{},"source":"default"}`,
		} {
			if got := string(n.Member(path).JSON()); got != want {
				t.Errorf("%s is %s", path, got)
			}
		}
		if got := string(n.Member("modelLockout").Member("maxCooldownMs").JSON()); got != `{"value":600000,"source":"file"}` {
			t.Error(got)
		}
	})
}

func TestPatch(t *testing.T) {
	stored := Stored{"autoDisableBannedAccounts": json.RawMessage("true")}
	t.Run("API-11 merges, null removes, stored stays", func(t *testing.T) {
		next, faults, err := Patch(inForce(), stored, parse(t, `{"customBannedSignals":[" over "],"autoDisableBannedAccounts":null}`), General, nil)
		want := Stored{"customBannedSignals": json.RawMessage(`["over"]`)}
		if d := cmp.Diff(want, next); d != "" || faults != nil || err != nil {
			t.Error(d, faults, err)
		}
		if len(stored) != 1 {
			t.Error("the patch changed what is stored")
		}
	})
	t.Run("API-11 an empty patch", func(t *testing.T) {
		_, faults, err := Patch(inForce(), stored, parse(t, `{}`), Resilience, nil)
		if len(faults) != 1 || faults[0].Message != "Must provide resilience settings to update" || err != nil {
			t.Error(faults, err)
		}
	})
	t.Run("OBJ-16 a field of the file refuses all", func(t *testing.T) {
		next, faults, err := Patch(inForce(), stored, parse(t, `{"customBannedSignals":["a"],"modelLockout":{"maxCooldownMs":7000}}`), General,
			Stored{"modelLockout.maxCooldownMs": json.RawMessage("6000")})
		if next != nil || !errors.Is(err, ErrManagedByFile) || len(faults) != 1 || faults[0].Path != "modelLockout.maxCooldownMs" {
			t.Error(next, faults, err)
		}
	})
	t.Run("API-14 API-2 COOL-10 COOL-62 faults", func(t *testing.T) {
		patch := parse(t, `{"connectionCooldown":{"apikey":{"baseCooldownMs":-1,"useUpstreamRetryHints":"yes","maxBackoffSteps":33},"api_key":{}},"routeDefault":1}`)
		_, faults, err := Patch(inForce(), stored, patch, Resilience, nil)
		patch = parse(t, `{"customBannedSignals":["","`+strings.Repeat("x", 201)+`","ok"],"exposeRoutingHeaders":"maybe","connectionCooldown":{}}`)
		_, more, err2 := Patch(inForce(), stored, patch, General, nil)
		var got []string
		for _, f := range append(faults, more...) {
			got = append(got, f.Path+": "+f.Message)
		}
		want := []string{
			"connectionCooldown.apikey.baseCooldownMs: must be 0 to 86400000",
			"connectionCooldown.apikey.useUpstreamRetryHints: must be true or false, not text",
			"connectionCooldown.apikey.maxBackoffSteps: must be 0 to 32",
			"connectionCooldown.api_key: is not known here; did you mean apikey?",
			"routeDefault: is not known here; did you mean routeDefaults?",
			"customBannedSignals[0]: must have 1 to 200 characters after trimming",
			"customBannedSignals[1]: must have 1 to 200 characters after trimming",
			"exposeRoutingHeaders: must be one of auto, on, off",
			"connectionCooldown: is not known here; it stands in resilience",
		}
		if d := cmp.Diff(want, got); d != "" || err != nil || err2 != nil {
			t.Error(d, err, err2)
		}
	})
}

func TestMarkdownIsCommitted(t *testing.T) {
	const page = "../../docs/settings.md"
	if *update {
		if err := os.WriteFile(page, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Markdown(), string(b)); d != "" {
		t.Error("docs/settings.md is out of date; run go test ./host/settings -update\n", d)
	}
}
