package plugin

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// decide has one judge say what a failed answer means, as the dispatcher does: restate, then classify, else by status (RST-2,
// CLS-13). The reply is restated in place.
func decide(ctx context.Context, j *Judge, r *rules.Reply) wire.Verdict {
	if r.Facts.HasBody {
		if said, ok := j.Restate(ctx, r); ok && said.Rejected {
			return wire.Rejection(said.Plugin, said.Rule, said.Digest)
		} else if ok && !said.Keep {
			r.Status, r.Restated = said.Status, cmp.Or(said.Rule, said.Plugin)
		}
	}
	if r.Source != wire.SourceTransport {
		r.Status = rules.HostStatus(r)
	}
	v, ok := j.Classify(ctx, r)
	if !ok {
		v = rules.ByStatus(r)
	}
	return waiting(v, r)
}

// waiting adds the wait that the answer itself asks for, where the verdict has none.
func waiting(v wire.Verdict, r *rules.Reply) wire.Verdict {
	if v.RetryAfter == 0 && r.Hint.OK {
		v.RetryAfter, v.Hinted, v.HintSource = r.Hint.Wait, r.Hint.Wait > 0, r.Hint.Source
	}
	return v
}

// opinion is what a chain made of an answer, for a person to read. A verdict's message may repeat what the answer said.
func opinion(r *rules.Reply, v wire.Verdict, redact func(string) string) Opinion {
	v.Message = redact(v.Message)
	return Opinion{Status: rules.HostStatus(r), Restated: r.Restated, DecidedBy: v.Evidence(), Verdict: rules.MarshalVerdict(v)}
}

// sameMeaning says whether two readings of one answer come to the same: who decided and with which words does not count.
func sameMeaning(ra, rb *rules.Reply, a, b wire.Verdict) bool {
	for _, v := range []*wire.Verdict{&a, &b} {
		v.Plugin, v.Rule, v.Digest, v.HintSource, v.Confidence, v.Hinted = "", "", "", "", 0, false
	}
	return rules.HostStatus(ra) == rules.HostStatus(rb) && a == b
}

// cut shortens a text to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimSpace(s[:n]) + "…"
}

// quiet asks guests so that nothing changes: each time on a fresh instance with an empty kv, of which nothing is counted.
type quiet struct {
	failed func() // hears of each guest that broke the rules; nil: nobody does
}

func (q quiet) restate(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Restatement, bool) {
	if !r.Facts.HasBody {
		return wire.Restatement{}, false
	}
	out, err := v.ask(ctx, wire.OpRestate, hookInput(r, v.manifest.Needs, v.config, now), now)
	if err != nil || string(out) == "null" {
		q.note(err)
		return wire.Restatement{}, false
	}
	said, ok, err := rules.ResolveRestatement(out)
	q.note(err)
	said.Plugin, said.Rule, said.Digest = v.name, "restate", v.digest
	return said, ok && err == nil
}

func (q quiet) classify(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Verdict, bool) {
	out, err := v.ask(ctx, wire.OpClassify, hookInput(r, v.manifest.Needs, v.config, now), now)
	if err != nil || string(out) == "null" {
		q.note(err)
		return wire.Verdict{}, false
	}
	said, ok, err := rules.Resolve(out, r, v.granted.Terminate)
	q.note(err)
	said.Plugin, said.Rule, said.Digest = v.name, "classify", v.digest
	return said, ok && err == nil
}

// note tells of a fault. Declining on purpose is none.
func (q quiet) note(err error) {
	if _, declined := errors.AsType[*rules.Declined](err); err != nil && !declined && q.failed != nil {
		q.failed()
	}
}

func (quiet) ruled(*version) {}
