// Package examples runs a plugin's own test vectors (ABI-2.4) the way the host does: tables first, with the host's own
// matcher, then the plugin's function. It owns that order and the comparison, and runs the same whether the plugin's code is
// an ordinary program or a guest in a sandbox. Guests never import it.
package examples

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Ask calls the plugin's code with host time nowMS, random 0 and an empty kv. nil is no opinion.
type Ask func(op wire.Op, input []byte, nowMS int64) ([]byte, error)

// Set is the examples of one plugin, ready to run.
type Set struct {
	manifest *wire.Manifest
	rules    *rules.Set
	ask      Ask
}

// New compiles the tables of a manifest, which must not change afterwards. The error names every rule that is wrong.
func New(m *wire.Manifest, ask Ask) (*Set, error) {
	s := &Set{manifest: m, ask: ask}
	table, problems := rules.Parse(m.Rules, rules.Options{
		Plugin: m.Name, Needs: m.Needs, Kinds: m.Kinds, Terminate: m.Permissions.Terminate != nil,
	})
	if len(problems) > 0 {
		var all []string
		for _, p := range problems {
			all = append(all, fmt.Sprintf("rule %s: %s: %s (%s)", p.Rule, p.Field, p.Message, p.Code))
		}
		return nil, fmt.Errorf("%s", strings.Join(all, "\n"))
	}
	s.rules = rules.Compile(rules.Source{Table: table, Plugin: m.Name, Matches: m.Matches})
	return s, nil
}

// Name is how messages call the i-th example.
func (s *Set) Name(i int) string {
	x := &s.manifest.Examples[i]
	if x.Name == "" {
		return fmt.Sprintf("%s %d", x.Op, i)
	}
	return x.Name
}

// Run runs the i-th example and says what is not as expected.
func (s *Set) Run(i int) error {
	x := &s.manifest.Examples[i]
	got, err := s.answer(x)
	if err != nil {
		return err
	}
	if got == nil {
		got = []byte("null")
	}
	return differ(x.Expect, got)
}

func (s *Set) answer(x *wire.Example) ([]byte, error) {
	switch x.Op {
	case "restate":
		return s.restate(x)
	case "classify":
		return s.classify(x)
	case "plan":
		return s.plan(x)
	}
	for _, op := range []wire.Op{wire.OpRespond, wire.OpRequest, wire.OpResponse} {
		if op.String() == x.Op {
			return s.hook(op, x.Input, x.NowMS)
		}
	}
	return nil, fmt.Errorf("examples of %q are not run; write plan, on_request, on_response, respond, restate or classify", x.Op)
}

// hook asks the plugin's code when the manifest lists the hook.
func (s *Set) hook(op wire.Op, input []byte, nowMS int64) ([]byte, error) {
	for _, h := range s.manifest.Hooks {
		if h == op.String() {
			return s.ask(op, input, nowMS)
		}
	}
	return nil, nil
}

func (s *Set) reply(x *wire.Example) (*rules.Reply, error) {
	var in wire.Reply
	if err := json.Unmarshal(x.Input, &in); err != nil {
		return nil, fmt.Errorf("the input: %w", err)
	}
	if in.NowMS == 0 {
		in.NowMS = x.NowMS
	}
	return rules.FromWire(in), nil
}

// input is the reply as a hook sees it: what needs declares, nothing more (ABI-4).
func (s *Set) input(r *rules.Reply) ([]byte, error) {
	needs := s.manifest.Needs
	in := wire.Reply{
		Provider: r.Provider, ConnectionID: r.Connection, Auth: r.Auth, Model: r.Model, Endpoint: r.Endpoint, Stream: r.Stream,
		Attempt: r.Attempt, NowMS: r.Now.UnixMilli(), Source: r.Source, Status: r.Status, OriginalStatus: r.Original,
		Headers: map[string]string{}, ElapsedMS: r.Elapsed.Milliseconds(), BytesSent: r.BytesSent,
		Error: wire.ErrorFacts{Code: r.Facts.Code, Type: r.Facts.Type, Message: r.Facts.Message, TextBytes: r.BodyBytes},
	}
	for name, values := range r.Header {
		if rules.Visible(needs, name) {
			in.Headers[name] = strings.Join(values, ", ")
		}
	}
	text := r.Facts.Text
	if most := rules.TextBytes(needs); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	in.Error.Text, in.Error.TextTruncated = text, len(text) < r.BodyBytes
	return json.Marshal(in)
}

func (s *Set) restate(x *wire.Example) ([]byte, error) {
	r, err := s.reply(x)
	if err != nil {
		return nil, err
	}
	if said, _, ok := s.rules.Match(r).Restate(0, 1); ok {
		if said.Keep && isNull(x.Expect) {
			return nil, nil
		}
		return rules.MarshalRestatement(said), nil
	}
	out, err := s.askAbout(wire.OpRestate, r)
	if err != nil {
		return nil, err
	}
	said, ok, err := rules.ResolveRestatement(out)
	if !ok || err != nil {
		return nil, err
	}
	return rules.MarshalRestatement(said), nil
}

func (s *Set) classify(x *wire.Example) ([]byte, error) {
	r, err := s.reply(x)
	if err != nil {
		return nil, err
	}
	m := s.rules.Match(r)
	if said, _, ok := m.Classify(rules.Normal, 0, 1); ok {
		return rules.MarshalVerdict(said), nil
	}
	out, err := s.askAbout(wire.OpClassify, r)
	if err != nil {
		return nil, err
	}
	said, ok, err := rules.Resolve(out, r, s.manifest.Permissions.Terminate != nil)
	if !ok || err != nil {
		return nil, err
	}
	return rules.MarshalVerdict(said), nil
}

func (s *Set) askAbout(op wire.Op, r *rules.Reply) ([]byte, error) {
	input, err := s.input(r)
	if err != nil {
		return nil, err
	}
	return s.hook(op, input, r.Now.UnixMilli())
}

func (s *Set) plan(x *wire.Example) ([]byte, error) {
	var q wire.PlanQuery
	if err := json.Unmarshal(x.Input, &q); err != nil {
		return nil, fmt.Errorf("the input: %w", err)
	}
	for i := range s.manifest.Plans {
		if row := &s.manifest.Plans[i]; matches(&row.Match, &q) {
			return json.Marshal(row.Plan)
		}
	}
	return s.hook(wire.OpPlan, x.Input, x.NowMS)
}

// matches says whether all given fields of m hold for q (ABI-2.2).
func matches(m *wire.Match, q *wire.PlanQuery) bool {
	one := func(patterns []string, s string) bool {
		for _, p := range patterns {
			if glob(strings.ToLower(p), strings.ToLower(s)) {
				return true
			}
		}
		return len(patterns) == 0
	}
	return one(m.Providers, q.Provider) && one(m.Models, q.UpstreamModel) && one(m.Endpoints, q.Endpoint) &&
		one(m.Auth, string(q.Connection.Auth)) && (m.Stream == nil || *m.Stream == q.Stream)
}

// glob knows one wildcard, the *.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, parts[0])
	for _, part := range parts[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return ok && strings.HasSuffix(s, parts[last])
}

func isNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }
