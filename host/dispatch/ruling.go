package dispatch

import (
	"context"
	"encoding/json"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Ruling is what a failed reply means.
type Ruling struct {
	Verdict   wire.Verdict
	Restated  *wire.Restatement // nil: the status stayed
	ByHost    bool              // nobody had an opinion: the host decided by status (CLS-13)
	ByTheHint bool              // the wait of the verdict is the one that the host read in the reply
}

// Rule is the one way from a failed reply to its verdict, whoever asks: restate, take the host's own corrections, classify, and
// judge by status when nobody has an opinion (RST-2, RST-10, CLS-13). signals are the operator's ban signals (COOL-62). The reply was
// read (rules.Read); its Status and Restated are set here. Nothing else is changed, so that records can be judged anew.
func Rule(ctx context.Context, judge Judge, signals []string, reply *rules.Reply) Ruling {
	var out Ruling
	var rejected *wire.Restatement
	if reply.Facts.HasBody { // RST-10
		if re, ok := judge.Restate(ctx, reply); ok && re.Rejected {
			rejected = &re
		} else if ok && !re.Keep {
			out.Restated = &re
			if reply.Status, reply.Restated = re.Status, re.Rule; re.Rule == "" {
				reply.Restated = re.Plugin
			}
		}
	}
	if reply.Source != wire.SourceTransport {
		reply.Status = rules.HostStatus(reply) // 520 and 524; what was restated stays (RST-10)
	}
	v, ok := customBan(reply, signals)
	switch {
	case ok:
	case rejected != nil:
		v, ok = wire.Rejection(rejected.Plugin, rejected.Rule, rejected.Digest), true
	default:
		v, ok = judge.Classify(ctx, reply)
	}
	if !ok {
		v, out.ByHost = rules.ByStatus(reply), true
	}
	if v.RetryAfter == 0 && reply.Hint.OK && !v.Exact { // a length that is exact takes no hint (RUL-32)
		v.RetryAfter, v.HintSource = reply.Hint.Wait, reply.Hint.Source
		v.Hinted = v.Hinted || reply.Hint.Wait > 0
		out.ByTheHint = true
	}
	out.Verdict = v
	return out
}

// EventStatus is the status that an error event of a stream states (STM-50).
func EventStatus(payload []byte) int {
	var d struct {
		Error json.RawMessage `json:"error"`
	}
	raw := json.RawMessage(payload)
	if json.Unmarshal(payload, &d) == nil && present(d.Error) {
		raw = d.Error
	}
	return payloadStatus(raw)
}
