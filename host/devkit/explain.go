package devkit

import (
	"encoding/json"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Cause is one condition of a rule and the part of an answer that met it.
type Cause = rules.Cause

// Explain makes every further verdict say what in the answer its rules rest on. Call it before the first one.
func (c *Court) Explain() {
	c.rules = map[string]json.RawMessage{}
	for _, s := range c.runtime.List() {
		var m struct {
			Name  string            `json:"name"`
			Rules []json.RawMessage `json:"rules"`
		}
		if json.Unmarshal(s.Manifest, &m) != nil {
			continue
		}
		for _, raw := range m.Rules {
			var r struct {
				ID string `json:"id"`
			}
			if json.Unmarshal(raw, &r) == nil {
				c.rules[m.Name+"/"+r.ID] = raw
			}
		}
	}
}

// explain adds the causes to a verdict. A restatement is explained by the answer as it came.
func (c *Court) explain(j *Judged, r *rules.Reply, v wire.Verdict) {
	came := *r
	came.Status = r.Original
	j.Restating = rules.Because(c.rules[j.RestatedBy], &came)
	j.Deciding = rules.Because(c.rules[j.DecidedBy], r)
	if v.Hinted {
		j.WaitFrom = v.HintSource
	}
}
