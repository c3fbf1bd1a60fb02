//go:build !wasip1

package sdk

import (
	"strconv"
	"strings"
)

// TB is what RunExamples needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// RunExamples runs the examples of the registered plugin that its own functions answer, as the host does: fixed time,
// random 0, empty kv. Examples that the rule table decides need the host's matcher and are run by the gateway when it loads
// the plugin; their number is logged.
func RunExamples(t TB) {
	t.Helper()
	if registered == nil {
		t.Errorf("no plugin is registered")
		return
	}
	registered.run(t)
}

func (p *Plugin) run(t TB) {
	t.Helper()
	byRules := 0
	for i := range p.Examples {
		x := &p.Examples[i]
		op, in := x.input()
		if op == 0 {
			t.Errorf("example %d %s has no input", i, x.Name)
			continue
		}
		if !p.answers(x) {
			byRules++
			continue
		}
		resetHost(x.NowMS)
		got := Parse(p.call(op, in.json(x.NowMS, p.provider())))
		if where := differs("", Parse(x.Want.json()), got); where != "" {
			t.Errorf("example %d %s: %s of %s", i, x.Name, where, got.Raw())
		}
	}
	if byRules > 0 {
		t.Logf("%d examples are for tables and run when the gateway loads the plugin", byRules)
	}
}

// answers says whether a function of the plugin, and not a table, answers the example.
func (p *Plugin) answers(x *Example) bool {
	switch {
	case x.Restate != nil:
		return p.OnRestate != nil && len(p.Restate) == 0
	case x.Classify != nil:
		return p.OnClassify != nil && len(p.Classify) == 0
	case x.Plan != nil:
		return p.Plan != nil && len(p.Plans) == 0
	}
	return p.Respond != nil
}

// differs says where got does not hold what want names; empty: nowhere.
func differs(path string, want, got Value) string {
	if want.Exists() && want.raw[0] == '{' {
		where := ""
		want.Each(func(key string, item Value) bool {
			where = differs(strings.TrimPrefix(path+"."+key, "."), item, got.Member(key))
			return where == ""
		})
		return where
	}
	if want.Exists() && want.raw[0] == '[' {
		return differsList(path, want, got)
	}
	if string(want.raw) == "null" && !got.Exists() || string(want.raw) == string(got.raw) {
		return ""
	}
	a, isText := want.Text()
	if b, ok := got.Text(); isText && ok && a == b {
		return ""
	}
	return path + " is not " + string(want.raw)
}

// differsList compares lists of one length item by item.
func differsList(path string, want, got Value) string {
	count := func(v Value) (n int) {
		v.Each(func(string, Value) bool { n++; return true })
		return n
	}
	n := count(want)
	if !got.Exists() || got.raw[0] != '[' || n != count(got) {
		return path + " is not a list of " + strconv.Itoa(n)
	}
	for i := range n {
		at := strconv.Itoa(i)
		if where := differs(path+"."+at, want.Get(at), got.Get(at)); where != "" {
			return where
		}
	}
	return ""
}
