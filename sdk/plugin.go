package sdk

import "github.com/weirgate/weir/sdk/wire"

// Plugin is what a guest registers. Data fields go into the manifest as they are; a function that is set becomes a hook.
type Plugin struct {
	Name, Version              string
	Summary, License, Homepage string

	Providers []string // globs: the providers that it speaks for; absent: all. For more than that, Matches
	Matches   []Match  // in place of Providers
	Priority  int      // ABI-9

	ErrorText     ErrorTextNeed // how much of an error's text rules and hooks see; absent: the first 4 KiB
	Headers       []string      // headers of an answer that rules and hooks see, in small letters; globs
	RequestFields []string      // paths of the request that OnRequest and Respond see: messages.-1.content
	Needs         Needs         // the three above in one, for what they do not say

	Entries      []ProviderEntry // providers that it describes (ABI-2.2)
	Plans        []PlanRow       // static plans: the first that matches is used, and Plan is not called
	Permissions  Permissions
	Limits       Limits
	ConfigSchema string // JSON Schema of the plugin's own configuration

	Restate    Rules
	Classify   Rules
	OnRestate  func(*Failure) *Restatement // when no rule decided; nil: keep the status
	OnClassify func(*Failure) *Verdict     // when no rule decided; nil: no opinion

	Plan       func(*PlanRequest) *Plan // when no static plan matched; nil: no plan
	OnRequest  func(*Request) *Edits    // for plans with HookRequest; nil: nothing more
	OnResponse func(*Response) *Edits   // for plans with HookResponse; nil: nothing
	OnEvent    func(*Event) Action      // for plans with HookEvents or HookStreams
	OnEnd      func(*End)               // when a stream ends that OnEvent saw, with HookStreams
	Respond    func(*Request) *Answer   // for plans with NoUpstream; nil: no answer

	Configure func(*Config) error // once for each instance, before everything else; an error refuses the configuration

	Examples Examples
}

// ErrorTextNeed is how much of an error's text a plugin sees (ABI-2).
type ErrorTextNeed string

// How much text: none, 4 KiB, or all up to 64 KiB.
const (
	NoText ErrorTextNeed = "none"
	Prefix ErrorTextNeed = "prefix"
	Full   ErrorTextNeed = "full"
)

// registered is the plugin of this guest: a module is one plugin.
var registered *Plugin

// Register makes p the plugin of this module. It is called once, from init.
func Register(p Plugin) {
	if registered != nil {
		panic("sdk: Register is called once")
	}
	registered = &p
}

// Error is a refusal on purpose, which is no fault of the plugin (ABI-1): the host logs it and does without the plugin's word.
type Error struct{ Code, Message string }

// The codes of an Error.
const (
	InvalidConfig = "invalid_config"
	Unsupported   = "unsupported"
	MissingSecret = "missing_secret"
	Internal      = "internal"
)

// Error is code: message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// errorOf is err as the host reads it; code is for errors that are no *Error.
func errorOf(err error, code string) *Error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // package errors would be the larger part of many guests
		return e
	}
	return &Error{Code: code, Message: err.Error()}
}

// write writes {"error": {...}}.
func (e *Error) write(w *Writer) {
	w.Object(func() {
		w.Key("error").Object(func() {
			w.Key("code").Text(e.Code)
			w.Key("message").Text(e.Message)
		})
	})
}

func (p *Plugin) kinds() []string {
	var kinds []string
	if len(p.Entries)+len(p.Plans) > 0 || p.Plan != nil || p.Respond != nil || p.OnRequest != nil || p.OnResponse != nil || p.OnEvent != nil {
		kinds = append(kinds, wire.KindExecutor)
	}
	if len(p.Restate) > 0 || p.OnRestate != nil {
		kinds = append(kinds, wire.KindRestatement)
	}
	if len(p.Classify) > 0 || p.OnClassify != nil {
		kinds = append(kinds, wire.KindClassifier)
	}
	return kinds
}

// hooks lists what the host may call. Who sees events also hears of their end, so that Streams can forget.
func (p *Plugin) hooks() []string {
	var hooks []string
	for _, h := range []struct {
		op  wire.Op
		set bool
	}{
		{wire.OpPlan, p.Plan != nil}, {wire.OpRequest, p.OnRequest != nil}, {wire.OpResponse, p.OnResponse != nil},
		{wire.OpEvent, p.OnEvent != nil}, {wire.OpEnd, p.OnEvent != nil}, {wire.OpRespond, p.Respond != nil},
		{wire.OpRestate, p.OnRestate != nil}, {wire.OpClassify, p.OnClassify != nil},
	} {
		if h.set {
			hooks = append(hooks, h.op.String())
		}
	}
	return hooks
}

func (p *Plugin) needs() Needs {
	n := p.Needs
	if p.ErrorText != "" {
		n.ErrorText = string(p.ErrorText)
	}
	n.Headers = append(append([]string(nil), n.Headers...), p.Headers...)
	n.RequestFields = append(append([]string(nil), n.RequestFields...), p.RequestFields...)
	return n
}

// describe writes the manifest. It depends on nothing but p, so that two calls answer the same bytes.
func (p *Plugin) describe(w *Writer) {
	w.Object(func() {
		w.Key("name").Text(p.Name)
		w.Key("version").Text(p.Version)
		w.Key("abi").Text("1.0")
		w.text("summary", p.Summary)
		w.text("license", p.License)
		w.text("homepage", p.Homepage)
		w.texts("kinds", p.kinds())
		matches := p.Matches
		if len(matches) == 0 && len(p.Providers) > 0 {
			matches = []Match{{Providers: p.Providers}}
		}
		list(w, "matches", matches, writeMatch)
		w.int("priority", int64(p.Priority))
		writeNeeds(w, p.needs())
		w.texts("hooks", p.hooks())
		if len(p.Restate)+len(p.Classify) > 0 {
			w.Key("rules").List(func() {
				p.Restate.write(w, "restate")
				p.Classify.write(w, "classify")
			})
		}
		list(w, "providers", p.Entries, writeProvider)
		list(w, "plans", p.Plans, writePlanRow)
		if p.ConfigSchema != "" {
			w.Key("config_schema").Raw([]byte(p.ConfigSchema))
		}
		writePermissions(w, p.Permissions)
		writeLimits(w, p.Limits)
		list(w, "examples", p.Examples, func(w *Writer, x Example) { x.write(w, p.provider()) })
	})
}

// provider is the first provider that the plugin names without a wildcard.
func (p *Plugin) provider() string {
	names := append([]string(nil), p.Providers...)
	for _, m := range p.Matches {
		names = append(names, m.Providers...)
	}
	for _, n := range names {
		if !hasStar(n) {
			return n
		}
	}
	return ""
}

func hasStar(glob string) bool {
	for i := range len(glob) {
		if glob[i] == '*' {
			return true
		}
	}
	return false
}

func list[T any](w *Writer, name string, items []T, write func(*Writer, T)) {
	if len(items) == 0 {
		return
	}
	w.Key(name).List(func() {
		for _, it := range items {
			write(w, it)
		}
	})
}
