package gatetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// modelSetting is a setting of probes, delays, re-checks or the lockout.
func modelSetting(v *settings.Values, name, value string) (known bool, err error) {
	durations := map[string]*time.Duration{
		"probe-first": &v.CooldownProbe.First, "probe-max": &v.CooldownProbe.Max, "rate-limit-reset": &v.RotationRateLimitReset,
		"recheck": &v.CredentialCheckInterval, "lockout-base": &v.ModelLockout.Base, "lockout-max": &v.ModelLockout.Max,
	}
	switches := map[string]*bool{
		"probe": &v.CooldownProbe.Enabled, "stall-cooldown": &v.StreamStallCooldown, "lockout": &v.ModelLockout.Enabled,
		"exponential": &v.ModelLockout.Exponential,
	}
	switch d, is := durations[name]; {
	case is:
		*d, err = time.ParseDuration(value)
		return true, err
	case switches[name] != nil:
		*switches[name], err = strconv.ParseBool(value)
		return true, err
	}
	switch name {
	case "lockout-steps":
		v.ModelLockout.MaxSteps, err = strconv.Atoi(value)
	case "codes":
		v.ModelLockout.ErrorCodes = nil
		for _, code := range strings.Split(value, "+") {
			n, err := strconv.Atoi(code)
			if err != nil {
				return true, err
			}
			v.ModelLockout.ErrorCodes = append(v.ModelLockout.ErrorCodes, n)
		}
	case "zone":
		hours, err := strconv.Atoi(value)
		v.ModelLockout.Zone = time.FixedZone("zone", hours*3600)
		return true, err
	case "override": // of openai
		d, err := time.ParseDuration(value)
		v.ProviderQuotaOverrides = map[string]settings.QuotaOverride{"openai": {RateLimitCooldown: d}}
		return true, err
	default:
		return false, nil
	}
	return true, err
}

// asked is t as a command asks for it: [MODEL] [model=MODEL] [as=ALIAS].
func (p *play) asked(t catalog.Target, args []string) catalog.Target {
	for i, arg := range args {
		name, value, named := strings.Cut(arg, "=")
		switch {
		case name == "as":
			t.Requested = value
			p.aliases[value] = t.Provider.ID + "/" + t.Model
		case name == "egress":
			moved := *t.Connection
			moved.EgressIP = value
			t.Connection = &moved
		case name == "model", !named && i == 0:
			if t.Model = value; !named {
				t.Model = arg
			}
			if t.Model == "-" {
				t.Model = ""
			}
		}
	}
	return t
}

// narrowed applies what the host makes of a verdict before anything acts on it; args are those of fail, of which text= and
// status= matter.
func (p *play) narrowed(t catalog.Target, o resilience.Outcome, args []string) wire.Verdict {
	r := lockout.Reply{Status: o.Cause.Status, Own: o.OwnDeadline}
	for _, arg := range args {
		if text, is := strings.CutPrefix(arg, "text="); is {
			r.Text = strings.ReplaceAll(text, "_", " ")
		}
	}
	return lockout.Narrow(p.at(), t, o.Verdict, r)
}

// models runs the commands about lockouts; known is false for any other.
func (p *play) models(name string, args []string) (out string, known bool, err error) {
	switch name {
	case "lockouts", "unlock", "unlock-connection", "unlock-all", "sweep":
	default:
		return "", false, nil
	}
	g, err := gateOf[*lockout.Gate](p)
	if err != nil {
		return "", true, err
	}
	n, es := 0, []store.Event(nil)
	switch name {
	case "lockouts":
		return p.lockouts(g), true, nil
	case "sweep":
		g.Sweep(p.now)
		return "swept", true, nil
	case "unlock":
		t, connection := p.targets[args[0]], args[0]
		if slices.Contains(args, "everywhere") {
			connection = ""
		}
		n, es = g.Clear(p.at(), t.Provider, connection, args[1])
	case "unlock-connection":
		n, es = g.ClearConnection(p.at(), args[0])
	case "unlock-all":
		n, es = g.ClearAll(p.at())
	}
	return fmt.Sprintf("%d ran; %s", n, p.events(es)), true, nil
}

func (p *play) lockouts(g *lockout.Gate) string {
	var out []string
	for _, l := range g.List(p.now) {
		line := fmt.Sprintf("%s %s %s: %s %s left=%v failures=%d since %s until %s", l.Provider, l.Connection, l.Model, l.Scope, l.Reason,
			l.Remaining, l.FailureCount, p.time(l.LockedAt.UnixMilli()), p.time(l.Until.UnixMilli()))
		if l.Cause != nil && l.Cause.Rule != "" {
			line += " by " + l.Cause.Plugin + "/" + l.Cause.Rule
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "\n")
}

// lockoutEvent prints an event of a lockout.
func (p *play) lockoutEvent(e store.Event) string {
	var s struct {
		Shape  string
		Reason wire.Reason
		Until  int64
		Count  int `json:"failureCount"`
	}
	if err := json.Unmarshal(e.Data, &s); err != nil {
		return err.Error()
	}
	line := fmt.Sprintf("%s r%d %s", e.Kind, e.Revision, e.Key)
	if s.Until != 0 {
		line += fmt.Sprintf(" %s count=%d until %s", s.Reason, s.Count, p.time(s.Until))
	}
	return line
}

// times prints what is to come of a record: probes and re-checks.
func (p *play) times(s account.State) string {
	var line string
	if at := s.NextProbe(p.now.UnixMilli()); at != 0 {
		line += " probe=" + p.time(at)
	}
	if s.RecheckAt != 0 {
		line += " recheck=" + p.time(s.RecheckAt)
	}
	return line
}
