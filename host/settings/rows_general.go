package settings

import (
	"encoding/json"
	"time"
)

const second, minute = time.Second, time.Minute

// credentialRows is credentialHealthCheck (OTH-43, COOL-59).
func credentialRows() []Row {
	return []Row{{
		Path: "credentialHealthCheck.intervalMinutes", Docs: []Doc{Resilience}, Default: 60, Max: 1440, Unit: minute,
		Meaning: "time to the first test of a connection without credit or with expired credentials, in minutes; doubled to one day; 0: never",
		at:      func(v *Values) any { return &v.CredentialCheckInterval },
	}}
}

// accountRows say which of a provider's connections comes first (SEL-3, SEL-4).
func accountRows() []Row {
	return []Row{
		{
			Path: "fallbackStrategy", Docs: []Doc{General}, Default: "fill-first", Words: accountStrategies(),
			Meaning: "which connection of a provider is taken first",
			at:      func(v *Values) any { return &v.FallbackStrategy },
		}, {
			Path: "providerStrategies", Docs: []Doc{General}, Default: map[string]map[string]any{}, as: strategies(),
			Meaning: "the same for one provider",
			at:      func(v *Values) any { return &v.ProviderStrategies },
		}, {
			Path: "stickyRoundRobinLimit", Docs: []Doc{General}, Default: 3, Min: 1, Max: 1000,
			Meaning: "uses of one connection before the strategy round-robin goes on to the next",
			at:      func(v *Values) any { return &v.StickyRoundRobinLimit },
		},
	}
}

// errorRows are the record of upstream errors (OBJ-19) and the operator's rules (RUL-30, RUL-40).
func errorRows() []Row {
	return []Row{
		{
			Path: "errorRecord.enabled", Docs: []Doc{General}, Default: true,
			Meaning: "upstream errors are recorded, without secrets, for replay",
			at:      func(v *Values) any { return &v.ErrorRecord.Enabled },
		}, {
			Path: "errorRecord.retentionDays", Docs: []Doc{General}, Default: 14, Min: 1, Max: 3650,
			Meaning: "age at which a recorded error is dropped",
			at:      func(v *Values) any { return &v.ErrorRecord.RetentionDays },
		}, {
			Path: "errorRecord.maxRows", Docs: []Doc{General}, Default: 5000, Max: 1_000_000,
			Meaning: "recorded errors that are kept at most",
			at:      func(v *Values) any { return &v.ErrorRecord.MaxRows },
		}, {
			Path: "errorRecord.maxBodyBytes", Docs: []Doc{General}, Default: 65_536, Max: 1_048_576,
			Meaning: "how much of each body is kept",
			at:      func(v *Values) any { return &v.ErrorRecord.MaxBodyBytes },
		}, {
			Path: "providerErrorRules", Docs: []Doc{General}, Default: json.RawMessage("{}"),
			Meaning: "the operator's own error rules, before all plugins",
			at:      func(v *Values) any { return &v.ProviderErrorRules },
			as:      raw{check: errorRules, says: "an object keyed by provider, of lists of rules"},
		}, {
			Path: "providerErrorDefaults", Docs: []Doc{General}, Default: json.RawMessage("{}"),
			Meaning: "what an error of a provider means that no rule knows",
			at:      func(v *Values) any { return &v.ProviderErrorDefaults },
			as:      raw{check: errorDefaults, says: "an object keyed by provider"},
		},
	}
}
