package manage

import (
	"encoding/json"
	"net/http"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/rules/operator"
)

// previewBody is what an operator thinks of saving by PATCH /api/settings.
type previewBody struct {
	Rules    json.RawMessage `json:"providerErrorRules,omitempty"`
	Defaults json.RawMessage `json:"providerErrorDefaults,omitempty"`
}

// previewRules answers which recorded errors the rules and defaults of the body would be about, were they in force. Nothing is
// stored (RUL-30, RUL-40).
func previewRules(s *Server, c *call) (any, error) {
	if s.ports.Preview == nil {
		return nil, &Problem{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "not_found", Message: "Nothing records errors here."}
	}
	last, err := c.number("last", usualReplay, 1, mostReplay)
	if err != nil {
		return nil, err
	}
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	var body previewBody
	if faults := n.Decode(&body); faults != nil {
		return nil, faulty(faults)
	}
	var set operator.Set
	var wrong, more []operator.Fault
	set.Rules, wrong = operator.ParseRules(body.Rules)
	set.Defaults, more = operator.ParseDefaults(body.Defaults)
	if faults := append(at("providerErrorRules", wrong), at("providerErrorDefaults", more)...); faults != nil {
		return nil, faulty(faults)
	}
	a, err := s.ports.Preview(c.ctx(), &set, last, c.r.URL.Query().Get("provider"))
	if err != nil {
		return nil, unreadableRecord(err)
	}
	return a, nil
}

// at says in which member of a body the faults are.
func at(member string, faults []operator.Fault) []document.Fault {
	var all []document.Fault
	for _, f := range faults {
		path := member
		if f.Path != "" {
			path += "." + f.Path
		}
		all = append(all, document.Fault{Path: path, Message: f.Message})
	}
	return all
}
