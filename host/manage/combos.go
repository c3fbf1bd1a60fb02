package manage

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
)

// Combo is a combo as the API shows it (OBJ-12).
type Combo struct {
	ID       string                   `json:"id"`
	Name     string                   `json:"name"`
	Strategy string                   `json:"strategy"`
	Targets  []comboTarget            `json:"targets"`
	Config   catalog.ComboConfigInput `json:"config"`
	IsActive bool                     `json:"isActive"`
	Warning  *shadowWarning           `json:"warning,omitempty"`
	meta
}

// comboTarget is one entry. The execution key is null for a reference or a wildcard, which stand for several targets.
type comboTarget struct {
	Kind         string   `json:"kind"`
	Model        string   `json:"model,omitempty"`
	ComboName    string   `json:"comboName,omitempty"`
	Weight       float64  `json:"weight"`
	Prompt       string   `json:"prompt,omitempty"`
	ConnectionID *string  `json:"connectionId"`
	Allowed      []string `json:"allowedConnectionIds"`
	ExecutionKey *string  `json:"executionKey"`
}

// shadowWarning says that a combo's name hides a model (CMB-2).
type shadowWarning struct {
	Code       string `json:"code"`
	ModelID    string `json:"modelId"`
	ProviderID string `json:"providerId"`
}

type comboList struct {
	Combos []Combo `json:"combos"`
	Total  int     `json:"total"`
}

func showCombo(snap *catalog.Snapshot, c *catalog.Combo) Combo {
	v := Combo{
		ID: c.Name, Name: c.Name, Strategy: c.Strategy, IsActive: c.Active, Config: shownConfig(c.Config),
		Targets: make([]comboTarget, 0, len(c.Targets)), meta: shownMeta(c.Meta),
	}
	var expanded []catalog.RouteTarget
	if c.Active {
		if r, err := snap.Resolve(c.Name); err == nil {
			expanded = r.Targets
		}
	}
	used := map[int]bool{}
	for i := range c.Targets {
		v.Targets = append(v.Targets, showTarget(&c.Targets[i], expanded, used))
	}
	return v
}

func showTarget(t *catalog.ComboTarget, expanded []catalog.RouteTarget, used map[int]bool) comboTarget {
	v := comboTarget{
		Kind: "model", Model: t.Model, ComboName: t.ComboRef, Weight: t.Weight, Prompt: t.Prompt,
		ConnectionID: orNull(t.Connection), Allowed: listOf(t.Allowed),
	}
	if t.ComboRef != "" {
		v.Kind = "combo-ref"
		return v
	}
	provider, model, _ := strings.Cut(t.Model, "/")
	for i := range expanded {
		e := &expanded[i]
		same := e.Model == model && (e.Provider.ID == provider || slices.Contains(e.Provider.Aliases, provider)) &&
			(e.Connection == nil) == (t.Connection == "") && (e.Connection == nil || e.Connection.ID == t.Connection)
		if same && !used[i] {
			used[i] = true
			v.ExecutionKey = &e.Key
			return v
		}
	}
	return v
}

func listCombos(s *Server, c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	a := comboList{Combos: []Combo{}, Total: len(c.catalog.Combos)}
	for _, one := range cut(c.catalog.Combos, p) {
		a.Combos = append(a.Combos, showCombo(c.catalog, one))
	}
	return a, nil
}

func getCombo(_ *Server, c *call) (any, error) {
	one := c.catalog.Combo(c.id)
	if one == nil {
		return nil, notFound("combo", c.id)
	}
	return showCombo(c.catalog, one), nil
}

func createCombo(s *Server, c *call) (any, error) {
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	in, err := readCombo(n)
	if err != nil {
		return nil, err
	}
	if in.Name != "" && c.catalog.Combo(in.Name) != nil {
		return nil, problem(http.StatusConflict, "There is a combo %q already; replace it with PUT, or choose another name.", in.Name)
	}
	return s.saveCombo(c, in, isNew())
}

func readCombo(n *document.Node) (catalog.ComboInput, error) {
	var in catalog.ComboInput
	return in, merge(without(n, append([]string{"id", "warning"}, shownOnly...)...), &in)
}

// replaceCombo makes the combo of that name, or replaces it whole.
func replaceCombo(s *Server, c *call) (any, error) {
	n, err := c.body()
	if err != nil {
		return nil, err
	}
	for i := range n.Members { // what getCombo adds to a target may be sent back
		if n.Members[i].Name == "targets" {
			for j, t := range n.Members[i].Value.Items {
				n.Members[i].Value.Items[j] = without(t, "executionKey")
			}
		}
	}
	in, err := readCombo(n)
	if err != nil {
		return nil, err
	}
	if in.Name == "" {
		in.Name = c.id
	}
	if in.Name != c.id {
		return nil, invalid(Detail{"name", "cannot be changed; make another combo"})
	}
	var expect *uint64
	old, err := s.storedCombo(c)
	switch p, _ := errors.AsType[*Problem](err); {
	case err == nil:
		expect, err = c.fresh("combo", c.id, old.Meta.Revision)
	case p != nil && p.Status == http.StatusNotFound:
		expect, err = c.absent("combo", c.id)
	}
	if err != nil {
		return nil, err
	}
	return s.saveCombo(c, in, expect)
}

func (s *Server) storedCombo(c *call) (*catalog.Entry[catalog.ComboInput], error) {
	stored, err := s.stored(c)
	if err != nil {
		return nil, err
	}
	var present *catalog.Meta
	if one := c.catalog.Combo(c.id); one != nil {
		present = &one.Meta
	}
	is := func(in *catalog.ComboInput) bool { return in.Name == c.id }
	return storedObject(stored.Combos, is, "combo", c.id, present)
}

func (s *Server) saveCombo(c *call, in catalog.ComboInput, expect *uint64) (any, error) {
	var ch change
	ch.put.Combos = []catalog.Entry[catalog.ComboInput]{{Object: in, Saving: true}}
	ch.expect = expect
	if err := s.apply(c, ch); err != nil {
		return nil, err
	}
	snap := s.ports.Catalog()
	one := snap.Combo(in.Name)
	if one == nil {
		return nil, notFound("combo", in.Name)
	}
	v := showCombo(snap, one)
	v.Warning = shadows(snap, in.Name)
	return v, nil
}

// shadows finds the model that a combo's name hides: provider/model, or a bare name that a configured provider lists.
func shadows(snap *catalog.Snapshot, name string) *shadowWarning {
	provider, model, _ := strings.Cut(name, "/")
	for _, p := range snap.Providers {
		for _, m := range p.Models {
			if m.ID == name && len(p.All) > 0 || m.ID == model && p.ID == provider {
				return &shadowWarning{"COMBO_NAME_SHADOWS_MODEL", m.ID, p.ID}
			}
		}
	}
	return nil
}

// deleteCombo refuses while an alias or another combo names it (OBJ-7).
func deleteCombo(s *Server, c *call) (any, error) {
	entry, err := s.storedCombo(c)
	if err != nil {
		return nil, err
	}
	for alias, model := range c.catalog.Aliases {
		if model == c.id {
			return nil, inUse("combo", c.id, "the alias "+alias+" names it")
		}
	}
	for _, other := range c.catalog.Combos {
		for _, t := range other.Targets {
			if t.ComboRef == c.id && other.Name != c.id {
				return nil, inUse("combo", c.id, "the combo "+other.Name+" names it")
			}
		}
	}
	if err := s.remove(c, catalog.DocCombo, "combo", c.id, entry.Meta.Revision); err != nil {
		return nil, err
	}
	return okAnswer{true}, nil
}

// shownConfig writes the options back as they are read.
func shownConfig(c catalog.ComboConfig) (v catalog.ComboConfigInput) {
	v.MaxRetries, v.MaxDepth = c.MaxRetries, c.MaxDepth
	v.FallbackOnFilter, v.FallbackOnOverflow = c.FallbackOnFilter, c.FallbackOnOverflow
	v.RetryDelay, v.FallbackDelay = millis(c.RetryDelay), millis(c.FallbackDelay)
	v.TargetTimeout, v.ComboTimeout = millis(c.TargetTimeout), millis(c.ComboTimeout)
	v.FirstContentTimeout, v.StallTimeout = millis(c.FirstContentTimeout), millis(c.StallTimeout)
	if c.StreamRecovery != "" {
		v.StreamRecovery = &c.StreamRecovery
	}
	if c.EncryptedState != "" {
		v.EncryptedState = &c.EncryptedState
	}
	v.CooldownWait, v.Hedging, v.MaxSetRetries = c.CooldownWait, c.Hedging, c.MaxSetRetries
	v.SetRetryDelay, v.HedgeDelay, v.PredictiveTTFT = millis(c.SetRetryDelay), millis(c.HedgeDelay), millis(c.PredictiveTTFT)
	v.StickyWeighted, v.StickyRoundRobin = c.StickyWeighted, c.StickyRoundRobin
	if x := c.Context; x != (catalog.ContextRequirements{}) {
		v.Context = &catalog.ContextInput{MinWindow: &x.MinWindow, PreferLarge: &x.PreferLarge, Mode: "lenient"}
		if x.Strict {
			v.Context.Mode = "strict"
		}
	}
	return v
}
