package dispatch

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// generation are the endpoints at which a provider may generate, in the order in which one is chosen for a client whose own it
// does not have (ABI-2).
var generation = [...]string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models:generateContent"}

// endpointOf is the endpoint of a call on the upstream's side: the client's own if the provider has it, else the provider's first
// one for generation, and then the host translates (ABI-2).
func endpointOf(p *catalog.Provider, c *Call) string {
	if _, has := p.Dialects[c.Endpoint]; has || len(p.Dialects) == 0 {
		return c.Endpoint
	}
	if _, translates := translate.Codec(c.Dialect); !translates {
		return c.Endpoint
	}
	for _, e := range generation {
		if _, has := p.Dialects[e]; has {
			return e
		}
	}
	return c.Endpoint
}

// isFault says whether a request cannot be said in the dialect of a target (TR-9, TR-31).
func isFault(err error) bool {
	_, ok := errors.AsType[*neutral.Fault](err)
	return ok
}

// findWay settles whether the request has to be translated for this target: the upstream speaks another dialect, or the body holds
// signatures that only another dialect's model can read (TR-18).
func (a *attempt) findWay() error {
	c, to := a.r.c, a.prep.Dialect
	if to == "" {
		to = c.Dialect
	}
	if _, ok := translate.Codec(to); !ok {
		return nil
	}
	if _, ok := translate.Codec(c.Dialect); !ok {
		return nil
	}
	if to == c.Dialect && a.r.rescue == nil && (to == wire.OpenAIChat || !repair.Sealed(c.Body.Bytes())) {
		return nil
	}
	way, err := a.newWay(to)
	a.way = way
	return err
}

func (a *attempt) newWay(to wire.Dialect) (*translate.Way, error) {
	r := a.r
	if r.neutral == nil && r.neutralErr == nil { // once per request, whatever the number of targets
		r.neutral, r.neutralErr = translate.Read(r.c.Dialect, r.c.Body.Bytes())
		if r.neutralErr == nil {
			r.neutral.Stream = r.c.Stream
			foreground(r.neutral)
		}
	}
	if r.neutralErr != nil {
		return nil, r.neutralErr
	}
	model := modelOf(a.target.Provider, a.target.Model)
	way, err := translate.NewWay(r.rescued(r.neutral), to, neutral.Target{
		Model: a.target.Model, Family: a.target.Provider.ID + "/" + family(a.target.Model), MaxOutput: int64(model.MaxOutput),
		NoSchema: a.target.Provider.Bends.NoSchema, Reduced: a.target.Provider.Bends.ReducedSchema, Marks: a.target.Provider.Bends.CacheMarks,
		Thinks: thinks(model, a.target.Model), Strict: isYes(r.c.Header.Get("X-Weir-Strict")),
	}, r.told())
	if err == nil && r.d.Signatures != nil {
		way.Remember(ownSignatures{r.d.Signatures, r.c.Key})
	}
	if err == nil && len(r.carried.items) > 0 {
		way.Reject(a.foreignSignature)
	}
	return way, err
}

// ownSignatures are those of one client key, since ids of calls are not unique among clients.
type ownSignatures struct {
	of  translate.Memory
	key *catalog.Key
}

func (s ownSignatures) name(call string) string {
	if s.key == nil {
		return call
	}
	return s.key.ID + "/" + call
}

// Keep remembers the signature of a call.
func (s ownSignatures) Keep(call, signature string) { s.of.Keep(s.name(call), signature) }

// Find returns it.
func (s ownSignatures) Find(call string) (string, bool) { return s.of.Find(s.name(call)) }

// told is what the client is told of its answer (TR-8).
func (r *run) told() neutral.Told {
	usage := r.neutral == nil || r.neutral.UsageInStream
	return neutral.Told{ID: toldID(r.c), Model: r.c.Model, Created: r.t.Began.Unix(), Usage: usage, Prompt: int64(r.c.Body.Len() / 4)}
}

// translated is the body for the upstream, or the client's own. What was dropped or bent stands in the trail.
func (a *attempt) translated() (*body.Buffer, error) {
	strips := a.strips()
	if strips {
		a.r.t.degrade(stateGate)
	}
	if a.own != nil { // the call is repeated
		return a.own, nil
	}
	if a.way == nil && strips && a.r.c.Dialect == wire.OpenAIResponses {
		b, err := a.stripped()
		a.own = b
		return b, err
	}
	if a.way == nil {
		return a.r.c.Body, nil
	}
	text, notes, err := a.way.Body(make([]byte, 0, a.r.c.Body.Len()+a.r.c.Body.Len()/8+512))
	for _, n := range notes {
		a.r.t.note("translation: " + n.Field + " " + n.What)
	}
	if err != nil {
		return nil, err
	}
	b, err := body.Read(bytes.NewReader(text), int64(len(text)), int64(len(text)))
	if err != nil {
		return nil, fmt.Errorf("keep the translated body: %w", err)
	}
	a.own = b
	return b, nil
}

// untranslatable leaves the target out because the client's request cannot be said in its dialect. When every target refuses, the
// client is told why, with the path (TR-31, CMB-18).
func (a *attempt) untranslatable(err error) step {
	fault, ok := errors.AsType[*neutral.Fault](err)
	if !ok {
		return a.impossible(fmt.Errorf("%w: %w", upstream.ErrPlanInvalid, err))
	}
	r := a.r
	r.d.Log.Debug("request cannot be translated", "request_id", r.c.RequestID, "provider", a.target.Provider.ID, "path", fault.Path)
	v := wire.Verdict{Reason: wire.InvalidRequest, Scope: wire.ScopeRequest, Plugin: "host", Rule: "translation"}
	if !r.last.set {
		r.last = lastWord{set: true, verdict: v, target: a.target, reply: replyFacts{
			status: http.StatusBadRequest, original: http.StatusBadRequest, message: fault.Error(), kind: "invalid_request_error", param: fault.Path,
		}}
	}
	r.t.exclude(a.target, resilience.Refusal{Gate: "translation", Reason: wire.InvalidRequest, Wait: resilience.WaitNever})
	r.d.Meter.Refused("translation")
	a.settle(resilience.Outcome{Ignore: true, Began: a.began})
	r.exhausted.ExcludeProvider(a.target.Provider.ID)
	return stepNext
}

// modelOf is what the catalogue knows of a model; the zero Model when it knows none of that name.
func modelOf(p *catalog.Provider, id string) wire.Model {
	for i := range p.Models {
		if p.Models[i].ID == id {
			return p.Models[i]
		}
	}
	return wire.Model{}
}

// family is the part of a model's name by which signatures know their own: without a date or a size behind it.
func family(model string) string {
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	for {
		i := strings.LastIndexByte(model, '-')
		if i <= 0 {
			return model
		}
		tail := model[i+1:]
		if tail != "latest" && tail != "preview" && (len(tail) < 6 || strings.Trim(tail, "0123456789") != "") {
			return model
		}
		model = model[:i]
	}
}

// thinks says whether a model reasons: as the catalogue says, else by the names under which such models are known, since most names
// are only passed through.
func thinks(m wire.Model, id string) bool {
	if m.Reasoning {
		return true
	}
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	id = strings.ToLower(id)
	for _, prefix := range [...]string{
		"o1", "o3", "o4", "gpt-5", "gpt-6", "gpt-oss", "codex", "claude-3-7", "claude-opus-4", "claude-sonnet-4", "claude-haiku-4", "claude-opus-5",
		"claude-sonnet-5", "claude-fable", "gemini-2.5", "gemini-3", "deepseek-r", "deepseek-reasoner", "qwq", "qwen3", "glm-4.5", "glm-4.6", "glm-5", "grok-4",
		"kimi-k2-thinking", "magistral", "minimax-m",
	} {
		if strings.HasPrefix(id, prefix) {
			return true
		}
	}
	return strings.Contains(id, "think") || strings.Contains(id, "reason")
}

func isYes(s string) bool {
	yes, err := strconv.ParseBool(strings.TrimSpace(s))
	return err == nil && yes
}
