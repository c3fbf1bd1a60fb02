package settings

import (
	"math"
	"slices"
	"time"
)

// Doc names the document of the API and block of the file that a setting belongs to.
type Doc string

// The documents: GET and PATCH /api/resilience (API-10), /api/settings (API-15).
const (
	Resilience Doc = "resilience"
	General    Doc = "settings"
)

// Row is one setting. Everything about it follows from here: parsing, bounds, documents, environment, documentation.
type Row struct {
	Path    string        // in the API and the file, connectionCooldown.apikey.baseCooldownMs; empty: environment only
	Docs    []Doc         // where Path stands
	Env     []string      // variables that seed the default, the first that is set wins (OV-20). WEIR_X is also read as OMNIROUTE_X (OV-12)
	Default any           // bool, int (also a time in units), string or []string; with a form of its own what that form sets
	Unit    time.Duration // of a time; 0: milliseconds
	Follows string        // name of an earlier row whose value is the default in place of Default
	Min     int64         // of numbers; of texts in a list: characters
	Max     int64
	Words   []string // what a text may be; none: any of Min to Max characters
	Meaning string

	at func(*Values) any // pointer to the field: *bool, *int, *time.Duration, *string or *[]string, or what as takes
	as form              // nil: by the type of Default

	derive   func(*Values) int64 // default that earlier rows decide
	low      func(*Values) int64 // bound that earlier rows raise; nil: Min
	high     func(*Values) int64 // bound that earlier rows lower; nil: Max
	above    string              // earlier row below which a patch may not set this one; low says its number
	readOnly bool                // shown in the documents, set by the environment alone
}

// Name is how documentation and sources call the row: its path, else its variable.
func (r *Row) Name() string {
	if r.Path != "" {
		return r.Path
	}
	return r.Env[0]
}

const (
	day    = 86_400_000 // milliseconds
	maxInt = int64(math.MaxInt32)
)

// Table returns every setting in the order of the documents.
func Table() []Row {
	return slices.Concat(
		cooldownRows("oauth", 5000, false, 8, func(v *Values) *CooldownProfile { return &v.ConnectionCooldown.OAuth }),
		cooldownRows("apikey", 3000, true, 5, func(v *Values) *CooldownProfile { return &v.ConnectionCooldown.APIKey }),
		cooldownRows("local", 2000, false, 3, func(v *Values) *CooldownProfile { return &v.ConnectionCooldown.Local }),
		probeRows(),
		breakerRows("oauth", "OAUTH", 8, 5, 60_000, func(v *Values) *BreakerProfile { return &v.ProviderBreaker.OAuth }),
		breakerRows("apikey", "API_KEY", 12, 7, 30_000, func(v *Values) *BreakerProfile { return &v.ProviderBreaker.APIKey }),
		breakerRows("local", "LOCAL", 2, 0, 15_000, func(v *Values) *BreakerProfile { return &v.ProviderBreaker.Local }),
		waitRows(),
		stallRows(),
		streamRows(),
		routeRows(),
		windowRows(),
		providerRows(),
		lockoutRows(),
		credentialRows(),
		generalRows(),
		accountRows(),
		errorRows(),
		requestRows(),
		emergencyRows(),
		timeoutRows(),
		streamTimeRows(),
		environmentRows(),
		rotationRows(),
	)
}

// routeRows are the options of direct requests and of combos that say nothing else (CMB-26).
func routeRows() []Row {
	return []Row{
		{
			Path: "routeDefaults.targetTimeoutMs", Docs: []Doc{Resilience}, Default: 0, Max: maxInt,
			Meaning: "start timeout of one attempt; 0: 120000 for combos, `FETCH_TIMEOUT_MS` for direct requests",
			at:      func(v *Values) any { return &v.RouteDefaults.TargetTimeout },
		}, {
			Path: "routeDefaults.firstContentTimeoutMs", Docs: []Doc{Resilience}, Default: 0, Max: 600_000,
			Meaning: "first useful event of a stream, or first byte of a plain answer; 0: `STREAM_READINESS_TIMEOUT_MS`",
			at:      func(v *Values) any { return &v.RouteDefaults.FirstContentTimeout },
		}, {
			Path: "routeDefaults.stallTimeoutMs", Docs: []Doc{Resilience}, Default: 0, Max: 600_000,
			Meaning: "time without a sign of the model, also after output; 0: `STREAM_CONTENT_STALL_TIMEOUT_MS` before the first output, `STREAM_IDLE_TIMEOUT_MS` after it",
			at:      func(v *Values) any { return &v.RouteDefaults.StallTimeout },
		}, {
			Path: "routeDefaults.streamRecovery", Docs: []Doc{Resilience}, Default: "off", Words: []string{"off", "hold", "continue"},
			Meaning: "what becomes of a stream that is cut: an error, another attempt behind the scenes, or a continuation",
			at:      func(v *Values) any { return &v.RouteDefaults.StreamRecovery },
		}, {
			Path: "routeDefaults.encryptedState", Docs: []Doc{Resilience}, Default: "strip", Words: []string{"strip", "refuse"},
			Meaning: "what becomes of encrypted reasoning in a request when another account than its issuer is asked: it is left out, or no other account is asked",
			at:      func(v *Values) any { return &v.RouteDefaults.EncryptedState },
		}, {
			Path: "routeDefaults.fallbackOnContentFilter", Docs: []Doc{Resilience}, Default: false,
			Meaning: "an answer refused by a content filter may try the next target",
			at:      func(v *Values) any { return &v.RouteDefaults.FallbackOnFilter },
		}, {
			Path: "routeDefaults.fallbackOnContextOverflow", Docs: []Doc{Resilience}, Default: true,
			Meaning: "a request too large for one model may try targets with a larger known window",
			at:      func(v *Values) any { return &v.RouteDefaults.FallbackOnOverflow },
		},
	}
}

func generalRows() []Row {
	return []Row{
		{
			Path: "exposeRoutingHeaders", Docs: []Doc{General}, Env: []string{"WEIR_EXPOSE_CONNECTION"}, Default: "auto",
			Words:   []string{"auto", "on", "off"},
			Meaning: "answers name connection, provider and model in `X-Weir-*` headers; auto: to loopback clients",
			at:      func(v *Values) any { return &v.ExposeRoutingHeaders },
		}, {
			Path: "autoDisableBannedAccounts", Docs: []Doc{General}, Default: false,
			Meaning: "a banned connection is also set inactive",
			at:      func(v *Values) any { return &v.AutoDisableBanned },
		}, {
			Path: "customBannedSignals", Docs: []Doc{General}, Default: []string{}, Min: 1, Max: 200,
			Meaning: "further texts in an error body that mean that an account is banned",
			at:      func(v *Values) any { return &v.CustomBannedSignals },
		},
	}
}

// timeoutRows are set by the environment alone (STM-1, STM-2, OV-11).
func timeoutRows() []Row {
	timeout := func(env []string, ms int, meaning string, at func(*Values) *time.Duration) Row {
		return Row{
			Env: env, Default: ms, Min: 1, Max: maxInt, Meaning: meaning,
			at: func(v *Values) any { return at(v) },
		}
	}
	body := timeout([]string{"FETCH_BODY_TIMEOUT_MS"}, 0, "whole body of an answer that is not a stream",
		func(v *Values) *time.Duration { return &v.BodyTimeout })
	body.Follows = "FETCH_TIMEOUT_MS"
	deadline := timeout([]string{"WEIR_ATTEMPT_DEADLINE_MS"}, 1_800_000, "hard end of one attempt, whatever it sends; 0: off",
		func(v *Values) *time.Duration { return &v.AttemptDeadline })
	deadline.Min = 0
	return []Row{
		timeout([]string{"FETCH_TIMEOUT_MS", "REQUEST_TIMEOUT_MS"}, 600_000, "time to the headers of an answer",
			func(v *Values) *time.Duration { return &v.FetchTimeout }),
		body,
		timeout([]string{"FETCH_CONNECT_TIMEOUT_MS"}, 30_000, "time to connect to an upstream",
			func(v *Values) *time.Duration { return &v.ConnectTimeout }),
		timeout([]string{"STREAM_READINESS_TIMEOUT_MS", "REQUEST_TIMEOUT_MS"}, 80_000, "time to the first useful event of a stream",
			func(v *Values) *time.Duration { return &v.ReadinessTimeout }),
		timeout([]string{"STREAM_IDLE_TIMEOUT_MS", "REQUEST_TIMEOUT_MS"}, 600_000, "time without any byte from the upstream",
			func(v *Values) *time.Duration { return &v.StreamIdleTimeout }),
		deadline,
		{
			Env: []string{"WEIR_COMPAT_HEADERS"}, Default: true,
			Meaning: "response headers are also sent under their old `X-OmniRoute-*` names",
			at:      func(v *Values) any { return &v.CompatHeaders },
		},
	}
}
