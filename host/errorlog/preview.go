package errorlog

import (
	"context"
	"slices"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/rules/operator"
	"github.com/weirgate/weir/sdk/wire"
)

// Preview is which recorded answers an operator's rules and defaults would be about, were they in force (RUL-30, RUL-40).
type Preview struct {
	Checked int           `json:"checked"` // records that were looked at
	Matched int           `json:"matched"` // of them: a rule or default holds
	Decided int           `json:"decided"` // of them: it would decide, nothing comes before it
	Rules   []RulePreview `json:"rules"`   // those that hold for some record, the commonest first
}

// RulePreview is what one rule or default would be about.
type RulePreview struct {
	Rule     string           `json:"rule"` // providerErrorRules.glm[0]
	Matched  int              `json:"matched"`
	Decided  int              `json:"decided"`
	Verdict  Verdict          `json:"verdict"` // of the newest
	Examples []PreviewExample `json:"examples"`
}

// PreviewExample is one record that a rule would be about, and who decides it.
type PreviewExample struct {
	RecordID  string      `json:"id"`
	At        time.Time   `json:"at"`
	Provider  string      `json:"provider"`
	Model     string      `json:"model"`
	Status    int         `json:"status"` // as it came
	Message   string      `json:"message"`
	Today     wire.Reason `json:"today"`     // what it was taken for when it came
	DecidedBy string      `json:"decidedBy"` // plugin/rule; settings/RULE is the operator's
}

// Preview judges the newest last records, of one provider when it is not empty, as if set were in force. Nothing is changed.
func (l *Log) Preview(ctx context.Context, last int, provider string, signals []string, set *operator.Set, judges Judges) (Preview, error) {
	records, _, err := l.List(ctx, Filter{Provider: provider}, last, 0)
	if err != nil {
		return Preview{}, err
	}
	out := Preview{Rules: []RulePreview{}}
	at := map[string]int{}
	for i := range records {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		r := &records[i]
		out.Checked++
		reply := r.Reply()
		reply.Operator = set
		said := dispatch.Rule(ctx, judges(reply.Provider), signals, reply)
		v, held := set.Rule(reply)
		if !held && said.Verdict.Plugin == operator.Source {
			v, held = said.Verdict, true // a default holds only where nothing else does
		}
		if !held {
			continue
		}
		out.Matched++
		n, known := at[v.Rule]
		if !known {
			n = len(out.Rules)
			at[v.Rule] = n
			out.Rules = append(out.Rules, RulePreview{Rule: v.Rule, Verdict: verdictOf(reply, v)})
		}
		row := &out.Rules[n]
		row.Matched++
		if said.Verdict.Plugin == operator.Source && said.Verdict.Rule == v.Rule {
			row.Decided++
			out.Decided++
		}
		if len(row.Examples) < maxExamples {
			row.Examples = append(row.Examples, PreviewExample{
				RecordID: r.ID, At: r.Now, Provider: r.Provider, Model: r.Model, Status: r.Status, Message: reply.Facts.Message,
				Today: r.Verdict.Reason, DecidedBy: said.Verdict.Evidence(),
			})
		}
	}
	slices.SortStableFunc(out.Rules, func(a, b RulePreview) int { return b.Matched - a.Matched })
	return out, nil
}
