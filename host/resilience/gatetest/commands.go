package gatetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

func (p *play) command(name string, args []string) (string, error) {
	switch name {
	case "restart":
		return p.restart()
	case "replay":
		return p.replay()
	}
	if len(args) == 0 {
		return "", fmt.Errorf("needs an argument")
	}
	switch name {
	case "admit":
		return p.admit(args[0], args[1], args[2:])
	case "fail":
		return p.fail(args[0], args[1:])
	case "ok":
		return p.events(p.ladder.Settle(p.at(), p.tickets[args[0]], resilience.Outcome{OK: true})), nil
	case "ignore":
		return p.events(p.ladder.Settle(p.at(), p.tickets[args[0]], resilience.Outcome{Ignore: true, Verdict: verdict(wire.Timeout)})), nil
	case "cancel":
		p.ladder.Cancel(p.at(), p.tickets[args[0]])
		return "cancelled", nil
	case "try", "use":
		asked := args[1:]
		if name == "try" { // what has no name is an option of the outcome
			asked = slices.DeleteFunc(slices.Clone(args[2:]), func(arg string) bool { return !strings.Contains(arg, "=") })
		}
		if answer, err := p.admit("", args[0], asked); err != nil || answer != "admitted" {
			return answer, err
		}
		if name == "use" {
			return p.command("ok", []string{""})
		}
		return p.fail("", args[1:])
	case "apply":
		return p.apply(args)
	}
	return p.operator(name, args)
}

func (p *play) operator(name string, args []string) (string, error) {
	id, at := args[0], p.at()
	switch name {
	case "show":
		s, ok := p.book.State(id)
		if !ok {
			return id + ": no record", nil
		}
		return p.record(id, s), nil
	case "reset":
		was, es := p.book.Reset(at, id)
		return fmt.Sprintf("was %s; %s", was, p.events(es)), nil
	case "clear":
		found, es := p.book.Clear(at, id)
		return [...]string{"unchanged", "done", "skipped, terminal"}[found] + "; " + p.events(es), nil
	case "passed":
		return p.events(p.book.Passed(at, id)), nil
	case "forget":
		return p.events(p.book.Forget(at, id)), nil
	case "credentials", "recount":
		n, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return "", err
		}
		t := p.targets[id]
		key := "key-" + args[1]
		if name == "recount" {
			key = t.Connection.Secrets["api_key"].Reveal()
			if len(args) > 2 {
				key = args[2]
			}
		}
		next := *t.Connection
		next.CredentialRevision = n
		next.Secrets = map[string]catalog.Secret{"api_key": catalog.NewSecret(key)}
		t.Connection = &next
		p.targets[id] = t
		if len(args) > 2 && args[2] == "quiet" {
			return "not told", nil
		}
		return p.events(p.book.Renew(at, t.Connection)), nil
	}
	if out, known, err := p.models(name, args); known {
		return out, err
	}
	return p.provider(name, args)
}

func (p *play) admit(ticket, id string, asked []string) (string, error) {
	t, ok := p.targets[id]
	if !ok {
		return "", fmt.Errorf("no connection %q", id)
	}
	t = p.asked(t, asked)
	peeked := p.ladder.Peek(p.at(), t)
	tk, refusal := p.ladder.Admit(p.at(), t)
	if (peeked == nil) != (refusal == nil) {
		return "", fmt.Errorf("peek says %+v, admit %+v", peeked, refusal)
	}
	if refusal != nil {
		return "refused by " + p.refusal(refusal), nil
	}
	p.tickets[ticket], p.about[ticket] = tk, t
	return "admitted", nil
}

func (p *play) refusal(r *resilience.Refusal) string {
	wait := [...]string{"never", "transient", "quota"}[r.Wait]
	until := "no end"
	if !r.RetryAt.IsZero() {
		until = "until " + p.time(r.RetryAt.UnixMilli())
	}
	since := "unknown"
	if !r.Since.IsZero() {
		since = p.time(r.Since.UnixMilli())
	}
	return fmt.Sprintf("%s: %s, %s, wait %s, since %s", r.Gate, r.Reason, until, wait, since)
}

func verdict(r wire.Reason) wire.Verdict {
	return wire.Verdict{Reason: r, Scope: r.DefaultScope(), Fallback: r.DefaultFallback(), Plugin: "test", Rule: string(r)}
}

func (p *play) fail(ticket string, args []string) (string, error) {
	reason, ok := wire.ParseReason(args[0])
	if !ok {
		return "", fmt.Errorf("no reason %q", args[0])
	}
	o := resilience.Outcome{Verdict: verdict(reason)}
	for _, arg := range args[1:] {
		if err := option(&o, arg); err != nil {
			return "", err
		}
	}
	if slices.Contains(args, "narrow") {
		o.Verdict = p.narrowed(p.about[ticket], o, args)
	}
	return p.events(p.ladder.Settle(p.at(), p.tickets[ticket], o)), nil
}

func option(o *resilience.Outcome, arg string) (err error) {
	name, value, _ := strings.Cut(arg, "=")
	switch name {
	case "scope":
		o.Verdict.Scope = wire.Scope(value)
	case "hint":
		o.Verdict.Hinted, o.Verdict.HintSource = true, "header:retry-after"
		o.Verdict.RetryAfter, err = time.ParseDuration(value)
	case "cooldown":
		o.Verdict.Cooldown, err = time.ParseDuration(value)
	case "status":
		o.Cause.Status, err = strconv.Atoi(value)
	case "original":
		o.Cause.OriginalStatus, err = strconv.Atoi(value)
	case "message":
		o.Cause.Message = strings.ReplaceAll(value, "_", " ")
	case "terminal":
		o.Verdict.Terminal, o.Verdict.SetStatus = true, wire.TerminalState(value)
	case "exact":
		o.Verdict.Exact = true
	case "own-deadline":
		o.OwnDeadline = true
	case "request-scoped":
		o.Verdict.RequestScoped = true
	case "bare": // the host's verdict by status, of no rule
		o.Verdict.Plugin, o.Verdict.Rule = "", ""
	case "text", "narrow", "model", "as":
	default:
		return providerOption(o, arg)
	}
	return err
}

func (p *play) restart() (string, error) {
	all := map[string][]byte{}
	for _, g := range p.ladder.Gates() {
		b, err := g.Snapshot()
		if err != nil {
			return "", err
		}
		all[g.Name()] = b
	}
	p.rebuild()
	for _, g := range p.ladder.Gates() {
		if err := g.Restore(all[g.Name()]); err != nil {
			return "", err
		}
	}
	return "restarted", nil
}

func (p *play) replay() (string, error) {
	p.rebuild()
	for _, e := range p.journal {
		if err := p.ladder.Apply(e); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("replayed %d events", len(p.journal)), nil
}

func (p *play) apply(args []string) (string, error) {
	revision, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return "", err
	}
	data := strings.Join(args[3:], " ")
	e := store.Event{Kind: args[0], Key: args[1], Revision: revision, Data: []byte(data)}
	if err := p.ladder.Apply(e); err != nil {
		return "error: " + err.Error(), nil
	}
	return "applied", nil
}
