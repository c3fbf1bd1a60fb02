package sdk

import (
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// Plugin is what a guest registers. Data fields go into the manifest as they are; a function that is set becomes a hook.
type Plugin struct {
	Name, Version              string
	Summary, License, Homepage string

	Providers []string      // globs: the providers that it speaks for; absent: all. For more than that, Matches
	Matches   []wire.Match  // in place of Providers
	Priority  int           // ABI-9
	Needs     wire.Needs    // what rules and hooks see
	ErrorText ErrorTextNeed // shorter than Needs.ErrorText

	Entries     []wire.Provider // providers that it describes (ABI-2.2)
	Plans       []wire.PlanRow  // static plans: the first that matches is used, and Plan is not called
	Permissions wire.Permissions
	Limits      wire.Limits

	Restate    Rules
	Classify   Rules
	OnRestate  func(*Failure) *Restatement            // when no rule decided; nil: keep the status
	OnClassify func(*Failure) *Verdict                // when no rule decided; nil: no opinion
	Plan       func(*PlanRequest) (*wire.Plan, error) // when no static plan matched; nil, nil: no plan
	Respond    func(*Request) *Answer                 // for plans with Upstream "none"

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

// Error is a refusal on purpose, which is no fault of the plugin: invalid_config, unsupported, missing_secret or internal
// (ABI-1).
type Error struct{ Code, Message string }

// Error is code: message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (p *Plugin) kinds() []string {
	var kinds []string
	if len(p.Entries) > 0 || len(p.Plans) > 0 || p.Plan != nil || p.Respond != nil {
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

func (p *Plugin) hooks() []string {
	var hooks []string
	for _, h := range []struct {
		name string
		set  bool
	}{{"plan", p.Plan != nil}, {"respond", p.Respond != nil}, {"restate", p.OnRestate != nil}, {"classify", p.OnClassify != nil}} {
		if h.set {
			hooks = append(hooks, h.name)
		}
	}
	return hooks
}

// describe is the manifest. It depends on nothing but p, so that two calls answer the same bytes.
func (p *Plugin) describe() []byte {
	w := &Writer{}
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
			matches = []wire.Match{{Providers: p.Providers}}
		}
		list(w, "matches", matches, writeMatch)
		w.int("priority", int64(p.Priority))
		needs := p.Needs
		if p.ErrorText != "" {
			needs.ErrorText = string(p.ErrorText)
		}
		writeNeeds(w, needs)
		w.texts("hooks", p.hooks())
		if len(p.Restate)+len(p.Classify) > 0 {
			w.Key("rules").List(func() {
				p.Restate.write(w, "restate")
				p.Classify.write(w, "classify")
			})
		}
		list(w, "providers", p.Entries, writeProvider)
		list(w, "plans", p.Plans, writePlanRow)
		writePermissions(w, p.Permissions)
		writeLimits(w, p.Limits)
		list(w, "examples", p.Examples, func(w *Writer, x Example) { x.write(w, p.provider()) })
	})
	return w.Bytes()
}

// provider is the first provider that the plugin names without a wildcard.
func (p *Plugin) provider() string {
	names := append([]string(nil), p.Providers...)
	for _, m := range p.Matches {
		names = append(names, m.Providers...)
	}
	for _, n := range names {
		if strings.IndexByte(n, '*') < 0 {
			return n
		}
	}
	return ""
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
