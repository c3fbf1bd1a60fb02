package plugin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Judge is the chain of rules and hooks that say what a failed answer of one provider means, valid until its Set is
// released. Safe for concurrent use.
type Judge struct {
	provider string
	members  []*version // with a table or hook for this provider
	tables   *tables
	fixed    *chain // when the order depends on the provider alone
	now      func() time.Time
	hooks    hooks // how guests are asked
}

// hooks is how a judge asks guests, and whom it tells that a rule decided.
type hooks interface {
	restate(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Restatement, bool)
	classify(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Verdict, bool)
	ruled(v *version)
}

// live asks the guests in force, and counts.
type live struct{}

func (live) restate(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Restatement, bool) {
	said, ok, _ := v.restate(ctx, r, now)
	return said, ok
}

func (live) classify(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Verdict, bool) {
	said, ok, _ := v.classify(ctx, r, now)
	return said, ok
}

func (live) ruled(v *version) { v.counters.rules.Add(1) }

// asking is the same chain, with the guests asked another way.
func (j *Judge) asking(h hooks) *Judge {
	c := *j
	c.hooks = h
	return &c
}

// chain is the members in the order of ABI-9, with their tables compiled to one matcher.
type chain struct {
	members []*version
	rules   *rules.Set
}

// tables keeps one chain for each order of plugins that occurs, so that providers share them. Safe for concurrent use.
type tables struct {
	mu     sync.Mutex
	chains map[string]*chain // guarded by mu
}

func (t *tables) chain(members []*version) *chain {
	var key strings.Builder
	for _, v := range members {
		key.WriteString(string(v.origin) + "/" + v.name + " ")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.chains[key.String()]
	if c == nil {
		sources := make([]rules.Source, len(members))
		for i, v := range members {
			sources[i] = rules.Source{Table: v.table, Plugin: v.name, Digest: v.digest, Matches: v.manifest.Matches}
		}
		c = &chain{members: members, rules: rules.Compile(sources...)}
		if t.chains == nil {
			t.chains = map[string]*chain{}
		}
		t.chains[key.String()] = c
	}
	return c
}

// maxJudges bounds the judges that a set keeps; the ids come from the catalogue, not from requests.
const maxJudges = 4096

// Judge returns the chain for p. It is found by an index: plugins that do not speak for p cost nothing (PLG-13).
func (s *Set) Judge(p *catalog.Provider) *Judge {
	if j := s.known[p.ID]; j != nil {
		return j
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.other[p.ID]
	if j == nil {
		j = s.newJudge(p.ID)
		if len(s.other) < maxJudges {
			s.other[p.ID] = j
		}
	}
	return j
}

func (s *Set) newJudge(provider string) *Judge { return judgeOf(provider, s.plugins, s.tables, s.now) }

func judgeOf(provider string, plugins []*version, shared *tables, now func() time.Time) *Judge {
	j := &Judge{provider: provider, tables: shared, now: now, hooks: live{}}
	steady := true
	for _, v := range plugins {
		if v.judges(provider) {
			j.members = append(j.members, v)
			steady = steady && v.steady()
		}
	}
	if steady {
		j.fixed = j.order("", "")
	}
	return j
}

// judges says whether the version may have something to say about a failed answer of the provider.
func (v *version) judges(provider string) bool {
	return (v.table.Len() > 0 || v.manifest.Hook("restate") || v.manifest.Hook("classify")) && v.speaksFor(provider)
}

// order sorts the members that have a say for the model and endpoint (ABI-9).
func (j *Judge) order(model, endpoint string) *chain {
	type ranked struct {
		*version
		close int
	}
	var list []ranked
	bare, prefixed := strings.CutPrefix(strings.ToLower(model), j.provider+"/")
	for _, v := range j.members {
		c := v.matches(j.provider, model, endpoint)
		if prefixed {
			c = max(c, v.matches(j.provider, bare, endpoint))
		}
		if c > 0 {
			list = append(list, ranked{v, c})
		}
	}
	slices.SortFunc(list, func(a, b ranked) int { return before(a.version, b.version, a.close, b.close) })
	members := make([]*version, len(list))
	for i, r := range list {
		members[i] = r.version
	}
	return j.tables.chain(members)
}

func (j *Judge) chain(r *rules.Reply) *chain {
	if j.fixed != nil {
		return j.fixed
	}
	return j.order(r.Model, r.Endpoint)
}

// Restate returns the true status of a failed answer, or false to keep it (RST-2). The first rule or hook that answers
// ends the search; a rule that keeps ends it too. A plugin that fails and is not to be gone without (on_violation fail_closed)
// ends it with Keep and Rejected.
func (j *Judge) Restate(ctx context.Context, r *rules.Reply) (wire.Restatement, bool) {
	c := j.chain(r)
	m, from := c.rules.Match(r), 0
	for i, v := range c.members {
		if !v.manifest.Hook("restate") {
			continue
		}
		if said, who, ok := m.Restate(from, i+1); ok {
			j.hooks.ruled(c.members[who])
			return said, !said.Keep
		}
		if said, ok := j.hooks.restate(ctx, v, r, j.now()); ok {
			return said, true
		}
		from = i + 1
	}
	said, who, ok := m.Restate(from, len(c.members))
	if ok {
		j.hooks.ruled(c.members[who])
	}
	return said, ok && !said.Keep
}

// Classify returns the verdict of the first rule or hook that has one, over the phases guard, normal and late (CLS-7).
// Hooks belong to the normal phase, each after the rules of its plugin. False: nobody has one.
func (j *Judge) Classify(ctx context.Context, r *rules.Reply) (wire.Verdict, bool) {
	c := j.chain(r)
	m, n := c.rules.Match(r), len(c.members)
	table := func(p rules.Phase, from, to int) (wire.Verdict, bool) {
		v, who, ok := m.Classify(p, from, to)
		if ok {
			j.hooks.ruled(c.members[who])
		}
		return v, ok
	}
	if v, ok := table(rules.Guard, 0, n); ok {
		return v, true
	}
	if r.Operator != nil {
		if v, ok := r.Operator.Rule(r); ok { // RUL-11
			return v, true
		}
	}
	from := 0
	for i, member := range c.members {
		if !member.manifest.Hook("classify") {
			continue
		}
		if v, ok := table(rules.Normal, from, i+1); ok {
			return v, true
		}
		if v, ok := j.hooks.classify(ctx, member, r, j.now()); ok {
			return v, true
		}
		from = i + 1
	}
	if v, ok := table(rules.Normal, from, n); ok {
		return v, true
	}
	if r.Operator != nil {
		if v, ok := r.Operator.Default(r); ok { // CLS-6
			return v, true
		}
	}
	return table(rules.Late, 0, n)
}

// Members names the plugins of the chain for a reply, in their order: what explain shows.
func (j *Judge) Members(r *rules.Reply) []string {
	var names []string
	for _, v := range j.chain(r).members {
		names = append(names, v.name)
	}
	return names
}

// restate asks the hook. One that misbehaves has no opinion (RUL-13), unless it must not be gone without.
func (v *version) restate(ctx context.Context, r *rules.Reply, now time.Time) (said wire.Restatement, ok bool, err error) {
	if !r.Facts.HasBody { // an error without a body is never restated (RST-10)
		return wire.Restatement{}, false, nil
	}
	err = v.hook(ctx, wire.OpRestate, r, now, func(out []byte) (err error) {
		said, ok, err = rules.ResolveRestatement(out)
		return err
	})
	if err != nil {
		said, ok = wire.Restatement{Keep: true, Rejected: true}, v.closes(err)
	}
	said.Plugin, said.Rule, said.Digest = v.name, "restate", v.digest
	return said, ok, err
}

// classify is restate for verdicts.
func (v *version) classify(ctx context.Context, r *rules.Reply, now time.Time) (verdict wire.Verdict, ok bool, err error) {
	err = v.hook(ctx, wire.OpClassify, r, now, func(out []byte) (err error) {
		verdict, ok, err = rules.Resolve(out, r, v.granted.Terminate)
		if ok && !v.granted.Terminate && rules.IgnoredTerminal(out) {
			v.counters.denied.Add(1)
		}
		return err
	})
	if err != nil {
		return wire.Rejection(v.name, "classify", v.digest), v.closes(err), err
	}
	verdict.Plugin, verdict.Rule, verdict.Digest = v.name, "classify", v.digest
	return verdict, ok, nil
}

func (v *version) hook(ctx context.Context, op wire.Op, r *rules.Reply, now time.Time, read func(out []byte) error) error {
	return v.guest.call(ctx, op, hookInput(r, v.manifest.Needs, v.config, now), read)
}
