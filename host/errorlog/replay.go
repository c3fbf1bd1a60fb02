package errorlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Judges finds the chain of plugins that speaks for a provider.
type Judges func(provider string) dispatch.Judge

// maxExamples is how many records stand beside each row of a Replay, and maxChanges how many rows it has.
const (
	maxExamples = 3
	maxChanges  = 200
)

// Operator is what the operator says beside all plugins: it holds for both sides of a replay.
type Operator struct {
	BanSignals []string       // COOL-62
	Rules      rules.Operator // RUL-30, RUL-40; nil: none
}

// Replay is what a candidate would decide otherwise on recorded answers (PLG-9).
type Replay struct {
	Replayed int      `json:"replayed"` // records that were judged twice
	Changed  int      `json:"changed"`  // of them: the verdicts differ
	Table    []Change `json:"table"`    // the commonest first
	Failed   int      `json:"failed"`   // records on which a hook of the candidate failed or was stopped
	Since    int      `json:"sinceRecorded"`
}

// Change is one way in which verdicts differ.
type Change struct {
	From     Verdict   `json:"from"` // today
	To       Verdict   `json:"to"`   // with the candidate
	Count    int       `json:"count"`
	Examples []Example `json:"examples"` // the newest ones
	Varies   bool      `json:"cooldownVaries,omitempty"`
}

// Example is one record of a change.
type Example struct {
	At        time.Time `json:"at"`
	Provider  string    `json:"provider"`
	Model     string    `json:"model"`
	Status    int       `json:"status"` // as it came
	Message   string    `json:"message"`
	RequestID string    `json:"requestId"`
	RecordID  string    `json:"id"`
	DecidedBy string    `json:"decidedBy"` // plugin/rule of the candidate's verdict; empty: the host, by status
	Today     string    `json:"today"`     // the same of today's
}

// Replay judges the newest last records, of one provider when it is not empty, with the plugins of today and with those of the
// candidate. failed is asked after each record how many hooks of the candidate have failed
// so far; nil: it is not known. Nothing is changed.
func (l *Log) Replay(ctx context.Context, last int, provider string, op Operator, today, candidate Judges, failed func() int64) (Replay, error) {
	records, _, err := l.List(ctx, Filter{Provider: provider}, last, 0)
	if err != nil {
		return Replay{}, err
	}
	return Compare(ctx, records, op, today, candidate, failed)
}

// Compare is Replay over given records, newest first.
func Compare(ctx context.Context, records []Record, op Operator, today, candidate Judges, failed func() int64) (Replay, error) {
	out := Replay{Table: []Change{}}
	rows := map[kind]*Change{}
	for i := range records {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		r := &records[i]
		before := count(failed)
		from, to := r.judge(ctx, today, op), r.judge(ctx, candidate, op)
		if count(failed) > before {
			out.Failed++
		}
		out.Replayed++
		if !from.verdict.same(r.Verdict) {
			out.Since++
		}
		if from.verdict.same(to.verdict) {
			continue
		}
		out.Changed++
		k := kind{from.verdict.shape(), to.verdict.shape()}
		if rows[k] == nil {
			rows[k] = &Change{From: from.verdict, To: to.verdict}
		}
		rows[k].add(r, from, to)
	}
	for _, row := range rows {
		out.Table = append(out.Table, *row)
	}
	slices.SortFunc(out.Table, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Examples[0].At.Compare(a.Examples[0].At), cmp.Compare(a.Examples[0].RecordID, b.Examples[0].RecordID))
	})
	out.Table = out.Table[:min(len(out.Table), maxChanges)]
	return out, nil
}

func count(failed func() int64) int64 {
	if failed == nil {
		return 0
	}
	return failed()
}

// judged is a verdict, who decided, and the message that it was about.
type judged struct {
	verdict   Verdict
	decidedBy string
	message   string
}

func (r *Record) judge(ctx context.Context, judges Judges, op Operator) judged {
	reply := r.Reply()
	reply.Operator = op.Rules
	said := dispatch.Rule(ctx, judges(reply.Provider), op.BanSignals, reply)
	return judged{verdictOf(reply, said.Verdict), said.Verdict.Evidence(), reply.Facts.Message}
}

// maxMessage is how much of a message an example shows, in bytes.
const maxMessage = 300

func (c *Change) add(r *Record, from, to judged) {
	c.Count++
	c.Varies = c.Varies || !equal(c.From.WaitMS, from.verdict.WaitMS) || !equal(c.To.WaitMS, to.verdict.WaitMS)
	if len(c.Examples) == maxExamples {
		return
	}
	message := from.message
	if len(message) > maxMessage {
		message = whole(message[:maxMessage]) + "…"
	}
	c.Examples = append(c.Examples, Example{
		At: r.Now, Provider: r.Provider, Model: r.Model, Status: r.Status, Message: message, RequestID: r.RequestID, RecordID: r.ID,
		DecidedBy: to.decidedBy, Today: from.decidedBy,
	})
}

// kind is what the verdicts of one row have in common: all but the length of the wait.
type kind struct{ from, to shape }

type shape struct {
	status                             int
	reason                             wire.Reason
	scope                              wire.Scope
	fallback, breaker, terminal, waits bool
	state                              wire.TerminalState
	chosen                             int64
	exact, requestScoped               bool
}

func (v Verdict) shape() shape {
	return shape{
		v.Status, v.Reason, v.Scope, v.Fallback, v.Breaker, v.Terminal, v.WaitMS != nil, v.TerminalState, v.ChosenMS, v.Exact, v.RequestScoped,
	}
}

// same says whether two verdicts have the same effects, whoever decided.
func (v Verdict) same(o Verdict) bool { return v.shape() == o.shape() && equal(v.WaitMS, o.WaitMS) }

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
