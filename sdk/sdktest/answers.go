package sdktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/plugin/manifest"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// refusals are the codes with which a plugin may decline (ABI-1).
var refusals = []string{"invalid_config", "unsupported", "missing_secret", "internal"}

// answered reads what an operation answered as a host does. declined is the code of a refusal on purpose; f is what is wrong
// with anything else.
func (c *checker) answered(op wire.Op, out []byte) (declined string, f *finding) {
	bad := func(format string, args ...any) *finding {
		w := wrong(violationGarbage, op.String()+" "+format, args...)
		return &w
	}
	if len(out) == 0 {
		return "", nil
	}
	if op == wire.OpEvent {
		a, ok := wire.ReadEventAnswer(out)
		switch {
		case !ok:
			return "", bad("answered %q, which is none of the forms of ABI-5", cut(out))
		case a.Action != wire.EventEnd:
			return "", nil
		}
		out = a.Data
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(out, &members); err != nil {
		return "", bad("answered %q, which is no JSON object", cut(out))
	}
	if raw, ok := members["error"]; ok && op != wire.OpPlan || ok && members["url"] == nil && members["upstream"] == nil {
		var e rules.Declined
		if json.Unmarshal(raw, &e) != nil || !slices.Contains(refusals, e.Code) {
			return "", bad("declines with %s; the code is one of %v", cut(raw), refusals)
		}
		return e.Code, nil
	}
	if err := c.form(op, out); err != nil {
		return "", bad("answered %s: %v", cut(out), err)
	}
	return "", nil
}

// form reads an answer into the document that the operation has.
func (c *checker) form(op wire.Op, out []byte) error {
	switch op {
	case wire.OpRestate:
		_, _, err := rules.ResolveRestatement(out)
		return err
	case wire.OpClassify:
		_, _, err := rules.Resolve(out, &rules.Reply{}, true)
		return err
	case wire.OpPlan:
		return c.usable(out)
	case wire.OpRequest, wire.OpResponse:
		return json.Unmarshal(out, new(wire.Edits))
	case wire.OpRespond:
		var a wire.Answer
		if err := json.Unmarshal(out, &a); err != nil {
			return err
		}
		if a.Status < 200 || a.Status > 599 {
			return fmt.Errorf("%d is no status of HTTP", a.Status)
		}
	}
	return nil
}

func cut(b []byte) string {
	if len(b) > 200 {
		return string(b[:200]) + "..."
	}
	return string(b)
}

// usable says whether a host can use a plan: its words are known, and its address is the connection's own or one that the
// plugin asks for (ABI-3).
func (c *checker) usable(out []byte) error {
	var p wire.Plan
	if err := json.Unmarshal(out, &p); err != nil {
		return err
	}
	for _, problem := range c.about.CheckPlan(&p) {
		if problem.Code != manifest.Unsupported {
			return errors.New(problem.String())
		}
	}
	if p.URL == "" || strings.HasPrefix(p.URL, "{{connection.base_url}}") {
		return nil
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return err
	}
	if h := c.about.Permissions.HTTP; h != nil {
		for _, host := range h.Hosts {
			if rest, ok := strings.CutPrefix(host, "*"); host == u.Host || ok && strings.HasSuffix(u.Host, rest) {
				return nil
			}
		}
	}
	return fmt.Errorf("the host %s is neither the connection's own nor in permissions.http.hosts", u.Host)
}
