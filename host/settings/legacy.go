package settings

import (
	"encoding/json"

	"github.com/weirgate/weir/host/document"
)

// oldProfile is one category of the shape that older clients send as profiles.{oauth,apikey} (API-12). Times are
// milliseconds. A rateLimitCooldown of 0 meant to use the upstream's hints.
type oldProfile struct {
	TransientCooldown       *int64 `json:"transientCooldown,omitempty"`
	RateLimitCooldown       *int64 `json:"rateLimitCooldown,omitempty"`
	MaxBackoffLevel         *int64 `json:"maxBackoffLevel,omitempty"`
	CircuitBreakerThreshold *int64 `json:"circuitBreakerThreshold,omitempty"`
	CircuitBreakerReset     *int64 `json:"circuitBreakerReset,omitempty"`
}

type oldProfiles struct {
	OAuth  oldProfile `json:"oauth"`
	APIKey oldProfile `json:"apikey"`
}

// fields are the settings that a profile stands for, by path, and the old name of each.
func (p *oldProfile) fields(category string) (values map[string]any, names map[string]string) {
	values, names = map[string]any{}, map[string]string{}
	set := func(path, name string, x any) { values[path], names[path] = x, name }
	cooldown, breaker := "connectionCooldown."+category+".", "providerBreaker."+category+"."
	if x := p.TransientCooldown; x != nil {
		set(cooldown+"baseCooldownMs", "transientCooldown", *x)
	}
	if x := p.RateLimitCooldown; x != nil {
		set(cooldown+"useUpstreamRetryHints", "rateLimitCooldown", *x == 0)
		if base, ok := values[cooldown+"baseCooldownMs"].(int64); *x > 0 && (!ok || *x > base) {
			set(cooldown+"baseCooldownMs", "rateLimitCooldown", *x)
		}
	}
	if x := p.MaxBackoffLevel; x != nil {
		set(cooldown+"maxBackoffSteps", "maxBackoffLevel", *x)
	}
	if x := p.CircuitBreakerThreshold; x != nil {
		set(breaker+"failureThreshold", "circuitBreakerThreshold", *x)
	}
	if x := p.CircuitBreakerReset; x != nil {
		set(breaker+"resetTimeoutMs", "circuitBreakerReset", *x)
	}
	return values, names
}

// readPatch is Read that also takes the old shape. A field that the patch gives under its present name wins.
func readPatch(patch *document.Node, which Doc) (Stored, []document.Fault) {
	old := patch.Member("profiles")
	if which != Resilience || old == nil {
		return Read(patch, which, "")
	}
	rest := *patch
	rest.Members = nil
	for i := range patch.Members {
		if patch.Members[i].Name != "profiles" {
			rest.Members = append(rest.Members, patch.Members[i])
		}
	}
	given, faults := Read(&rest, which, "")
	var profiles oldProfiles
	if wrong := old.DecodeAt("profiles", &profiles); len(wrong) > 0 {
		return given, append(faults, wrong...)
	}
	table := Table()
	for category, p := range map[string]*oldProfile{"oauth": &profiles.OAuth, "apikey": &profiles.APIKey} {
		values, names := p.fields(category)
		for path, x := range values {
			if _, ok := given[path]; ok {
				continue
			}
			b, err := json.Marshal(x)
			if err != nil {
				continue // numbers and booleans always encode
			}
			n, _ := document.ParseJSON("", b)
			at := "profiles." + category + "." + names[path]
			if _, wrong := find(table, path).parse(n, at); len(wrong) > 0 {
				faults = append(faults, patch.Fault(at, wrong[0].Message))
				continue
			}
			given[path] = b
		}
	}
	return given, document.InOrder(faults)
}

// legacy shows the values in force in the old shape (API-10, API-12).
func legacy(v *Values) *document.Node {
	profile := func(c CooldownProfile, b BreakerProfile) oldProfile {
		base, hints := c.Base.Milliseconds(), int64(0)
		if !c.UseHints {
			hints = base
		}
		steps, opens, reset := int64(c.MaxSteps), int64(b.FailureThreshold), b.ResetTimeout.Milliseconds()
		return oldProfile{&base, &hints, &steps, &opens, &reset}
	}
	b, err := json.Marshal(map[string]oldProfiles{"profiles": {
		OAuth:  profile(v.ConnectionCooldown.OAuth, v.ProviderBreaker.OAuth),
		APIKey: profile(v.ConnectionCooldown.APIKey, v.ProviderBreaker.APIKey),
	}})
	if err != nil {
		return &document.Node{Kind: document.Map} // numbers always encode
	}
	n, _ := document.ParseJSON("", b)
	return n
}
