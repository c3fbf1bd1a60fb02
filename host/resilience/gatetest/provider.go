package gatetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

// faults are the words of fault=.
var faults = map[string]resilience.Fault{
	"answer": resilience.FaultAnswer, "unreachable": resilience.FaultUnreachable, "transport": resilience.FaultTransport,
	"own-deadline": resilience.FaultOwnDeadline, "target-timer": resilience.FaultTargetTimer, "readiness": resilience.FaultReadiness,
	"early-eof": resilience.FaultEarlyEOF, "empty-content": resilience.FaultEmptyContent, "stall": resilience.FaultStall,
}

// providerOption is an option of an outcome that speaks of the provider.
func providerOption(o *resilience.Outcome, arg string) error {
	name, value, _ := strings.Cut(arg, "=")
	switch name {
	case "fault":
		f, ok := faults[value]
		if !ok {
			return fmt.Errorf("no fault %q", value)
		}
		o.Fault = f
	case "sibling":
		o.SiblingNext = true
	case "account":
		o.AccountNext = true
	case "local":
		o.Local = true
	case "skip-breaker":
		o.Verdict.SkipBreaker = true
	default:
		return fmt.Errorf("no option %q", arg)
	}
	return nil
}

// providerSetting is a setting of the breaker or of the provider cooldown.
func providerSetting(v *settings.Values, name, value string) (err error) {
	b, w, c := &v.ProviderBreaker.APIKey, &v.ProviderCooldown.APIKey, &v.ConnectionCooldown.APIKey
	key := name
	if rest, ok := strings.CutPrefix(name, "oauth-"); ok {
		b, w, c, key = &v.ProviderBreaker.OAuth, &v.ProviderCooldown.OAuth, &v.ConnectionCooldown.OAuth, rest
	} else if rest, ok := strings.CutPrefix(name, "local-"); ok {
		b, w, c, key = &v.ProviderBreaker.Local, &v.ProviderCooldown.Local, &v.ConnectionCooldown.Local, rest
	}
	switch key {
	case "opens":
		b.FailureThreshold, err = strconv.Atoi(value)
	case "degrades":
		b.DegradationThreshold, err = strconv.Atoi(value)
	case "reset":
		b.ResetTimeout, err = time.ParseDuration(value)
	case "rate-limits":
		b.KindThresholds.RateLimit, err = strconv.Atoi(value)
	case "quotas":
		b.KindThresholds.QuotaExhausted, err = strconv.Atoi(value)
	case "transients":
		b.KindThresholds.Transient, err = strconv.Atoi(value)
	case "immediate":
		b.ImmediateOpen = strings.Split(value, "+")
	case "hints429":
		var on bool
		on, err = strconv.ParseBool(value)
		c.Use429BreakerHints = &on
	case "deadline":
		v.AttemptDeadline, err = time.ParseDuration(value)
	case "execution-max":
		v.ExecutionMaxWait, err = time.ParseDuration(value)
	case "provider-cooldown":
		v.ProviderCooldown.Enabled, err = strconv.ParseBool(value)
	case "failures":
		w.Threshold, err = strconv.Atoi(value)
	case "within":
		w.Window, err = time.ParseDuration(value)
	case "cools":
		w.Cooldown, err = time.ParseDuration(value)
	case "min-retry":
		v.ProviderCooldown.MinRetry, err = time.ParseDuration(value)
	case "max-retry":
		v.ProviderCooldown.MaxRetry, err = time.ParseDuration(value)
	default:
		return fmt.Errorf("no setting %q", name)
	}
	return err
}

// gateOf is the gate of type G on the ladder.
func gateOf[G resilience.Gate](p *play) (g G, err error) {
	for _, one := range p.ladder.Gates() {
		if g, ok := one.(G); ok {
			return g, nil
		}
	}
	return g, fmt.Errorf("no %T on this ladder", g)
}

// provider runs the commands about providers.
func (p *play) provider(name string, args []string) (string, error) {
	switch name {
	case "request":
		p.combo, p.pinned = args[0] == "combo", slices.Contains(args, "pinned")
		return strings.Join(args, " "), nil
	case "repeat":
		return p.repeat(args)
	case "entries", "clear-entries":
		return p.windows(name, args)
	}
	g, err := gateOf[*breaker.Gate](p)
	if err != nil {
		return "", fmt.Errorf("no command %q: %w", name, err)
	}
	switch name {
	case "breaker":
		return p.breaker(g.Status(p.at(), args[0])), nil
	case "breakers":
		all := g.All(p.at())
		names := make([]string, len(all))
		for i, s := range all {
			names[i] = s.Name + " " + s.State.String()
		}
		return fmt.Sprintf("%d: %s", len(all), strings.Join(names, ", ")), nil
	case "transitions":
		return p.transitions(g.Status(p.at(), args[0])), nil
	case "reset-breaker":
		if args[0] == "all" {
			args = nil
		}
		n, es := g.Reset(p.at(), args...)
		return fmt.Sprintf("%d reset; %s", n, p.events(es)), nil
	case "passed-test":
		return p.events(g.Passed(p.at(), args[0])), nil
	case "pending":
		return p.events(g.Pending(p.at())), nil
	}
	return "", fmt.Errorf("no command %q", name)
}

// repeat runs a command n times and lets time pass between; the last answer is shown.
func (p *play) repeat(args []string) (answer string, err error) {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return "", err
	}
	step, err := time.ParseDuration(args[1])
	if err != nil {
		return "", err
	}
	for i := range n {
		if i > 0 {
			p.now = p.now.Add(step)
		}
		if answer, err = p.command(args[2], args[3:]); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("at %s: %s", p.time(p.now.UnixMilli()), answer), nil
}

// breaker prints what a person would ask about first.
func (p *play) breaker(s breaker.Status) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s: %s count=%d", s.Name, s.State, s.FailureCount)
	for _, k := range []string{"rate_limit", "quota_exhausted", "transient"} {
		if n := s.KindFailureCounts[k]; n > 0 {
			fmt.Fprintf(&line, " %s=%d", k, n)
		}
	}
	fmt.Fprintf(&line, " cycles=%d hold=%v", s.OpenCycleCount, time.Duration(s.EffectiveResetTimeout)*time.Millisecond)
	if s.RetryAfterMs > 0 {
		fmt.Fprintf(&line, " retry-after=%v", time.Duration(s.RetryAfterMs)*time.Millisecond)
	}
	return line.String()
}

func (p *play) transitions(s breaker.Status) string {
	var out []string
	for _, h := range s.TransitionHistory {
		at, err := time.Parse(time.RFC3339, h.At)
		if err != nil {
			return err.Error()
		}
		out = append(out, fmt.Sprintf("%s %s -> %s count=%d %s", p.time(at.UnixMilli()), h.From, h.To, h.Count, h.Reason))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "\n")
}

// breakerEvent prints an event of the breaker.
func (p *play) breakerEvent(e store.Event) string {
	line := fmt.Sprintf("%s r%d", e.Kind, e.Revision)
	g, err := gateOf[*breaker.Gate](p)
	if err != nil {
		return line
	}
	return line + " " + p.breaker(g.Status(p.at(), e.Key))
}

func (p *play) windows(name string, args []string) (string, error) {
	g, err := gateOf[*window.Gate](p)
	if err != nil {
		return "", err
	}
	if name == "clear-entries" {
		if args[0] == "all" {
			args = nil
		}
		return fmt.Sprintf("%d cooled", g.Clear(p.at(), args...)), nil
	}
	var out []string
	for _, e := range g.Entries(p.at()) {
		line := e.Provider
		if e.ConnectionID != "" {
			line += ":" + e.ConnectionID
		}
		line += fmt.Sprintf(": failures=%d last=%s %s", e.Failures, p.time(e.FailedAt.UnixMilli()), e.Reason)
		if !e.Until.IsZero() {
			line += " until " + p.time(e.Until.UnixMilli())
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return "none", nil
	}
	return strings.Join(out, "\n"), nil
}
