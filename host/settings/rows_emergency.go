package settings

// Emergency is emergencyFallback: where a request goes whose accounts are out of money (OTH-23).
type Emergency struct {
	Enabled   bool
	Provider  string
	Model     string
	MaxOutput int // tokens
}

// emergencyRows are emergencyFallback (OTH-23).
func emergencyRows() []Row {
	return []Row{
		{
			Path: "emergencyFallback.enabled", Docs: []Doc{General}, Env: []string{"WEIR_EMERGENCY_FALLBACK"}, Default: true,
			Meaning: "a request without tools that fails for lack of money is sent once to a free model, if that has an account",
			at:      func(v *Values) any { return &v.Emergency.Enabled },
		}, {
			Path: "emergencyFallback.provider", Docs: []Doc{General}, Default: "nvidia", Min: 1, Max: 100,
			Meaning: "provider of that model",
			at:      func(v *Values) any { return &v.Emergency.Provider },
		}, {
			Path: "emergencyFallback.model", Docs: []Doc{General}, Default: "openai/gpt-oss-120b", Min: 1, Max: 300,
			Meaning: "the provider's name for it",
			at:      func(v *Values) any { return &v.Emergency.Model },
		}, {
			Path: "emergencyFallback.maxOutputTokens", Docs: []Doc{General}, Default: 4096, Min: 1, Max: 1_000_000,
			Meaning: "longest answer of that model",
			at:      func(v *Values) any { return &v.Emergency.MaxOutput },
		},
	}
}
