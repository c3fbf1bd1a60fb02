package catalog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/sdk/wire"
)

// DemoProvider is the provider that --demo adds (OBJ-26).
const DemoProvider = "demo"

var providerID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// providers takes what plugins describe, then the operator's changes and additions.
func (b *builder) providers() {
	unique := map[string]*Provider{}
	for i := range b.in.Described {
		d := &b.in.Described[i]
		for j := range d.Providers {
			b.describe(unique, d, &d.Providers[j])
		}
	}
	pick := func(in *Input) []Entry[ProviderInput] { return in.Providers }
	for _, it := range items(b, "provider", pick, func(p ProviderInput) string { return p.ID }) {
		p := b.operators(unique, it)
		if b.settle(it.owner(), it.faults) {
			unique[p.ID] = p
		}
	}
	b.sortedProviders(unique)
	for _, p := range b.s.Providers {
		b.s.providers[p.ID] = p
	}
	for _, p := range b.s.Providers {
		for _, alias := range p.Aliases {
			if other, taken := b.s.providers[alias]; taken && other != p {
				b.warn("the alias %q of provider %s already names %s and is ignored", alias, p.ID, other.ID)
				continue
			}
			b.s.providers[alias] = p
		}
	}
}

// describe adds a plugin's provider. It belongs to the plugin that described it first (ABI-2.2).
func (b *builder) describe(unique map[string]*Provider, d *Described, w *wire.Provider) {
	if w.ID == DemoProvider && d.Builtin && !b.in.Demo {
		return
	}
	if first, taken := unique[w.ID]; taken {
		b.warn("provider %s of plugin %s already belongs to plugin %s; it is ignored", w.ID, d.Plugin, first.Plugin)
		return
	}
	p := &Provider{
		ID: w.ID, Name: orText(w.Name, w.ID), Category: Category(w.Category), Auth: w.Auth,
		BaseURL: strings.TrimRight(w.BaseURL, "/"), Dialects: maps.Clone(w.Dialects), Aliases: slices.Clone(w.Aliases),
		Models: slices.Clone(w.Models), Passthrough: len(w.Models) == 0, PerModel: w.PerModelQuota,
		Families:   families(w.QuotaFamilies),
		Compatible: generic(w.ID), Executor: d.Plugin, Plugin: d.Plugin, Docs: w.Docs, KeyEnv: slices.Clone(w.KeyEnv),
		EgressFamily: egressFamily(w.ID, w.EgressBucketed), Bends: bends(w.Translation),
		Meta: Meta{Revision: 1, ManagedBy: ByPlugin},
	}
	if w.AssistantPrefill {
		p.Prefill = &w.AssistantPrefill
	}
	if w.PassthroughModels != nil {
		p.Passthrough = *w.PassthroughModels
	}
	if len(p.Dialects) == 0 {
		p.Dialects = maps.Clone(d.PlanDialects)
	}
	p.defaults()
	unique[p.ID] = p
}

// mayRead says whether the variables of a provider's key_env may be read: those of built-in plugins, and what the operator
// granted.
func (b *builder) mayRead(p *Provider) bool {
	for i := range b.in.Described {
		if d := &b.in.Described[i]; d.Plugin == p.Plugin {
			return d.Builtin || slices.Contains(d.KeyEnvGranted, p.ID)
		}
	}
	return false
}

func (p *Provider) defaults() {
	if p.EgressFamily == "" {
		p.EgressFamily = egressFamily(p.ID, false)
	}
	if p.Auth == "" {
		p.Auth = wire.AuthAPIKey
		switch p.Category {
		case OAuth:
			p.Auth = wire.AuthOAuth
		case Local:
			p.Auth = wire.AuthLocal
		}
	}
	if p.Category == "" {
		p.Category = APIKey
		switch p.Auth {
		case wire.AuthOAuth:
			p.Category = OAuth
		case wire.AuthLocal:
			p.Category = Local
		}
	}
}

// generic says whether an id is one of the seed's own generic providers (COOL-56).
func generic(id string) bool {
	return strings.HasPrefix(id, "openai-compatible-") || strings.HasPrefix(id, "anthropic-compatible-")
}

// operators applies one entry of the operator: over a described provider only the given fields, else as a new one.
func (b *builder) operators(unique map[string]*Provider, it *item[ProviderInput]) *Provider {
	o := &it.Object
	p := &Provider{ID: o.ID, Name: o.ID, Passthrough: len(o.Models) == 0, Compatible: true}
	if base, known := unique[o.ID]; known {
		copied := *base
		p = &copied
	} else {
		b.newProvider(it, p)
	}
	p.Meta = it.Meta
	if o.Executor != nil {
		p.Executor = *o.Executor
		b.executor(it, p)
	}
	b.override(it, p)
	p.defaults()
	if o.BaseURL != nil && it.Meta.ManagedBy == ByAPI {
		if err := CheckBaseURL(*o.BaseURL, p.Category, p.AllowPrivate); err != nil {
			it.fault("baseUrl", "%s", err)
		}
	}
	return p
}

func (b *builder) newProvider(it *item[ProviderInput], p *Provider) {
	o := &it.Object
	if !providerID.MatchString(o.ID) {
		it.fault("id", "must be 1 to 63 of a-z, 0-9 and -, and not begin with -")
	}
	if o.Executor == nil {
		it.fault("", "no plugin describes the provider %q; name the plugin that speaks its language as executor%s", o.ID,
			didYouMean(o.ID, slices.Sorted(maps.Keys(b.describedIDs()))))
	}
	if o.BaseURL == nil {
		it.fault("baseUrl", "is needed for a provider of your own")
	}
	p.Auth, p.Category = "", ""
}

func (b *builder) describedIDs() map[string]bool {
	ids := map[string]bool{}
	for _, d := range b.in.Described {
		for i := range d.Providers {
			ids[d.Providers[i].ID] = true
		}
	}
	return ids
}

// executor checks the named plugin and takes the dialects that its plans speak, unless the entry names its own.
func (b *builder) executor(it *item[ProviderInput], p *Provider) {
	var names []string
	for i := range b.in.Described {
		d := &b.in.Described[i]
		if d.Plugin == p.Executor {
			if len(p.Dialects) == 0 || p.Plugin == "" {
				p.Dialects = maps.Clone(d.PlanDialects)
			}
			return
		}
		names = append(names, d.Plugin)
	}
	it.fault("executor", "there is no plugin %q%s", p.Executor, didYouMean(p.Executor, names))
}

func (b *builder) override(it *item[ProviderInput], p *Provider) {
	o := &it.Object
	set(&p.Name, o.Name)
	set(&p.Category, o.Category)
	set(&p.Auth, o.Auth)
	set(&p.Passthrough, o.PassthroughModels)
	set(&p.PerModel, o.PerModelQuota)
	if o.AssistantPrefill != nil {
		p.Prefill = o.AssistantPrefill
	}
	if o.Translation != nil {
		p.Bends = bends(o.Translation)
		for i, word := range o.Translation {
			if !slices.Contains(bendWords, word) {
				it.fault(fmt.Sprintf("translation[%d]", i), "must be one of %s", strings.Join(bendWords, ", "))
			}
		}
	}
	set(&p.AllowPrivate, o.AllowPrivate)
	if !slices.Contains([]Category{"", OAuth, APIKey, Local}, p.Category) {
		it.fault("category", "must be oauth, apikey or local")
	}
	if !slices.Contains([]wire.Auth{"", wire.AuthAPIKey, wire.AuthOAuth, wire.AuthLocal}, p.Auth) {
		it.fault("auth", "must be api_key, oauth or local")
	}
	if o.BaseURL != nil {
		p.BaseURL = strings.TrimRight(*o.BaseURL, "/")
		if _, err := parseBaseURL(*o.BaseURL); err != nil {
			it.fault("baseUrl", "%s", err)
		}
	}
	if o.Dialects != nil {
		p.Dialects = maps.Clone(o.Dialects)
		dialects(it, o.Dialects)
	}
	if o.Aliases != nil {
		p.Aliases = slices.Clone(o.Aliases)
	}
	if o.Models != nil {
		p.Models = models(it, o.Models)
	}
	if o.Headers != nil {
		p.Headers = maps.Clone(o.Headers)
		headers(it, o.Headers)
	}
}

func models(it *item[ProviderInput], in []ModelInput) []wire.Model {
	out := make([]wire.Model, 0, len(in))
	seen := map[string]bool{}
	for i, m := range in {
		if m.ID == "" || seen[m.ID] {
			it.fault(fmt.Sprintf("models[%d]", i), "needs an id that no other model of this provider has")
			continue
		}
		seen[m.ID] = true
		out = append(out, wire.Model{
			ID: m.ID, Name: m.Name, ContextWindow: m.ContextWindow, MaxOutput: m.MaxOutput,
			InputModalities: m.InputModalities, Reasoning: m.Reasoning,
		})
	}
	return out
}

func dialects(it *item[ProviderInput], in map[string]wire.Dialect) {
	known := []string{
		string(wire.OpenAIChat), string(wire.OpenAIResponses), string(wire.AnthropicMessages), string(wire.GeminiGenerate), string(wire.RawDialect),
	}
	for _, endpoint := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(known, string(in[endpoint])) {
			it.fault(document.Join("dialects", endpoint), "must be one of %s", strings.Join(known, ", "))
		}
	}
}

func headers(it *item[ProviderInput], in map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !headerName(name) || strings.ContainsAny(in[name], "\r\n\x00") {
			it.fault(document.Join("headers", name), "is not a valid HTTP header")
		}
		switch strings.ToLower(name) {
		case "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer":
			it.fault(document.Join("headers", name), "belongs to the transport and cannot be set")
		}
	}
}

func headerName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func set[T any](field *T, given *T) {
	if given != nil {
		*field = *given
	}
}

func orText(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func didYouMean(name string, known []string) string {
	near := document.Nearest(name, known, 3)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}
