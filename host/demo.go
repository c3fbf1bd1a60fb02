package host

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirgate/weir/host/catalog"
)

// Ready describes the gateway that Start brought up.
func (h *Host) Ready() Ready {
	s := h.catalog.Current()
	r := Ready{Address: h.Addr(), Providers: len(s.Providers)}
	for c := range s.Connections() {
		if c.Active {
			r.Connections++
		}
	}
	for _, p := range h.plugins.List() {
		if p.State == "active" {
			r.Plugins++
		}
	}
	r.Curl = h.curl(s)
	return r
}

// curl is a command line that works as printed: a chat request when there is a model to ask, else the list of models.
func (h *Host) curl(s *catalog.Snapshot) string {
	auth := ""
	if s.NeedKey() || !h.loopback() {
		auth = ` -H "authorization: Bearer $WEIR_CLIENT_KEY"`
	}
	model := firstModel(s)
	if model == "" {
		return fmt.Sprintf("curl -s http://%s/v1/models%s", h.Addr(), auth)
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body, err := json.Marshal(struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
	}{model, []message{{"user", "Hello, Weir!"}}})
	if err != nil { // strings always encode
		body = []byte("{}")
	}
	return fmt.Sprintf("curl -s http://%s/v1/chat/completions%s -H 'content-type: application/json' -d '%s'", h.Addr(), auth,
		strings.ReplaceAll(string(body), "'", `'\''`))
}

// firstModel prefers the demo's, which needs nothing.
func firstModel(s *catalog.Snapshot) string {
	if p := s.Provider(catalog.DemoProvider); p != nil && len(p.Connections) > 0 {
		return catalog.DemoProvider + "/echo"
	}
	if names := s.ModelNames(nil); len(names) > 0 {
		return names[0]
	}
	return ""
}
