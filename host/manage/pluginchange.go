package manage

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/plugin"
)

// signatureHeader carries the .minisig file of a module, in base64 (PLG-11).
const signatureHeader = "X-Weir-Plugin-Signature"

// grants is what a plugin may do, as the API writes it (PLG-15).
type grants struct {
	HTTP      *httpGrant `json:"http,omitempty"`
	KV        *kvGrant   `json:"kv,omitempty"`
	Secrets   []string   `json:"secrets,omitempty"`
	Terminate bool       `json:"terminate"`
	Providers []string   `json:"providers,omitempty"`
}

type httpGrant struct {
	Hosts   []string `json:"hosts"`
	Private []string `json:"private,omitempty"` // those of the hosts that may be found at private addresses
}

type kvGrant struct {
	Bytes int `json:"bytes"`
}

func grantsOf(g plugin.Grants) grants {
	out := grants{Terminate: g.Terminate, Providers: g.Providers}
	if len(g.HTTPHosts) > 0 {
		out.HTTP = &httpGrant{g.HTTPHosts, g.HTTPPrivate}
	}
	if g.KVBytes > 0 {
		out.KV = &kvGrant{g.KVBytes}
	}
	for name := range g.Secrets {
		out.Secrets = append(out.Secrets, name)
	}
	slices.Sort(out.Secrets)
	return out
}

// plugin is the grant in the runtime's form. Values of secrets do not come this way.
func (g grants) plugin() (plugin.Grants, error) {
	out := plugin.Grants{Terminate: g.Terminate, Providers: g.Providers}
	if g.HTTP != nil {
		out.HTTPHosts, out.HTTPPrivate = g.HTTP.Hosts, g.HTTP.Private
	}
	if g.KV != nil {
		if out.KVBytes = g.KV.Bytes; out.KVBytes < 0 {
			return out, invalid(Detail{"kv.bytes", "must not be negative"})
		}
	}
	for _, name := range g.Secrets {
		if out.Secrets == nil {
			out.Secrets = plugin.Secrets{}
		}
		out.Secrets[name] = catalog.Secret{}
	}
	return out, nil
}

// module reads the body of a call that brings a plugin.
func (c *call) module() ([]byte, error) {
	b, err := io.ReadAll(c.r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, problem(http.StatusRequestEntityTooLarge, "The module is larger than %d MiB; make it smaller.", tooLarge.Limit>>20)
	}
	if err == nil && len(b) == 0 {
		return nil, invalid(Detail{"body", "must be the module, or the YAML of a pack"})
	}
	return b, err
}

// reported answers with a report: 422 when a step failed.
func reported(r plugin.Report, good int) withStatus {
	if !r.OK {
		good = http.StatusUnprocessableEntity
	}
	return withStatus{good, r}
}

func checkPlugin(s *Server, c *call) (any, error) {
	module, err := c.module()
	if err != nil {
		return nil, err
	}
	return reported(s.ports.Shelf.Check(c.ctx(), module), http.StatusOK), nil
}

// putPlugin adds or replaces (PLG-10): 201 for a name that was not there, else 200; 422 when a step failed and nothing changed.
func putPlugin(s *Server, c *call) (any, error) {
	o, err := c.putOptions()
	if err != nil {
		return nil, err
	}
	module, err := c.module()
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if _, known := s.ports.Shelf.Detail(c.id); !known {
		status = http.StatusCreated
	}
	r, err := s.ports.Shelf.Put(c.ctx(), c.id, module, o)
	if err != nil {
		return nil, err
	}
	return reported(r, status), nil
}

func (c *call) putOptions() (plugin.PutOptions, error) {
	q := c.r.URL.Query()
	o := plugin.PutOptions{Mode: q.Get("mode"), Source: q.Get("source")}
	signature := c.r.Header.Get(signatureHeader)
	if signature == "" {
		signature = strings.ReplaceAll(q.Get("signature"), " ", "+") // a plus that was not escaped
	}
	if signature != "" {
		b, err := base64.StdEncoding.DecodeString(signature)
		if err != nil {
			return o, invalid(Detail{signatureHeader, "must be the content of the .minisig file in base64"})
		}
		o.Signature = b
	}
	if text := q.Get("grants"); text != "" {
		n, faults := document.ParseJSON("", []byte(text))
		if len(faults) > 0 || n == nil || n.Kind != document.Map {
			return o, invalid(Detail{"grants", "must be a JSON object, as POST /api/plugins/{name}/grants takes"})
		}
		var g grants
		if faults := n.Decode(&g); len(faults) > 0 {
			return o, faulty(faults)
		}
		granted, err := g.plugin()
		if err != nil {
			return o, err
		}
		o.Grants = &granted
	}
	return o, nil
}

func deletePlugin(s *Server, c *call) (any, error) {
	drop := s.ports.Shelf.Remove
	switch text := c.r.URL.Query().Get("candidate"); text {
	case "", "false":
	case "true":
		drop = s.ports.Shelf.DropCandidate
	default:
		return nil, invalid(Detail{"candidate", "must be true or false"})
	}
	if err := drop(c.ctx(), c.id); err != nil {
		return nil, err
	}
	return okAnswer{true}, nil
}

type shownVersion struct {
	plugin.VersionInfo
	AddedAt *string `json:"addedAt"`
}

type versionList struct {
	Versions []shownVersion `json:"versions"`
}

func pluginVersions(s *Server, c *call) (any, error) {
	all, ok := s.ports.Shelf.Versions(c.id)
	if !ok {
		return nil, notFound("plugin", c.id)
	}
	a := versionList{Versions: []shownVersion{}}
	for _, v := range all {
		a.Versions = append(a.Versions, shownVersion{v, stamp(v.AddedAt)})
	}
	return a, nil
}

func promotePlugin(s *Server, c *call) (any, error) {
	if err := s.ports.Shelf.Promote(c.ctx(), c.id); err != nil {
		return nil, err
	}
	return getPlugin(s, c)
}

func rollbackPlugin(s *Server, c *call) (any, error) {
	if err := s.ports.Shelf.Rollback(c.ctx(), c.id); err != nil {
		return nil, err
	}
	return getPlugin(s, c)
}

type modeBody struct {
	Mode string `json:"mode"`
}

func setPluginMode(s *Server, c *call) (any, error) {
	var b modeBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if err := s.ports.Shelf.SetMode(c.ctx(), c.id, b.Mode); err != nil {
		return nil, err
	}
	return getPlugin(s, c)
}

func grantPlugin(s *Server, c *call) (any, error) {
	var b grants
	if err := c.read(&b); err != nil {
		return nil, err
	}
	g, err := b.plugin()
	if err != nil {
		return nil, err
	}
	if err := s.ports.Shelf.Grant(c.ctx(), c.id, g); err != nil {
		return nil, err
	}
	return getPlugin(s, c)
}

// How many records a replay judges.
const (
	usualReplay = 1000
	mostReplay  = 1_000_000
)

// replayPlugin answers the table of PLG-9, or the report of a candidate that does not load.
func replayPlugin(s *Server, c *call) (any, error) {
	last, err := c.number("last", usualReplay, 1, mostReplay)
	if err != nil {
		return nil, err
	}
	module, err := c.module()
	if err != nil {
		return nil, err
	}
	a, err := s.ports.Replay(c.ctx(), module, last, c.r.URL.Query().Get("provider"))
	if f, ok := errors.AsType[*plugin.Fault](err); ok {
		return nil, &Problem{Status: http.StatusUnprocessableEntity, Type: "invalid_request_error", Code: f.Code,
			Message: fmt.Sprintf("The candidate cannot be tried: %s: %s.", f.Step, strings.TrimSuffix(f.Message, "."))}
	}
	if err != nil {
		return nil, unreadableRecord(err)
	}
	return a, nil
}
