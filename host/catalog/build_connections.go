package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/sdk/wire"
)

// The names of the secrets that have a field of their own.
const (
	SecretAPIKey       = "api_key"
	SecretAccessToken  = "access_token"
	SecretRefreshToken = "refresh_token"
)

var connectionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (b *builder) connections() {
	pick := func(in *Input) []Entry[ConnectionInput] { return in.Connections }
	have := map[string]bool{} // providers with a connection in file or store
	for _, it := range items(b, "connection", pick, func(c ConnectionInput) string { return c.ID }) {
		c := b.connection(it)
		if p := b.s.providers[it.Object.Provider]; p != nil {
			have[p.ID] = true
		}
		if b.settle(it.owner(), it.faults) {
			b.add(c)
		}
	}
	b.fromEnvironment(have)
	if b.in.Demo {
		b.demo()
	}
	for _, p := range b.s.Providers {
		order := func(x, y *Connection) int {
			return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(x.ID, y.ID))
		}
		slices.SortFunc(p.All, order)
		slices.SortFunc(p.Connections, order)
	}
}

func (b *builder) add(c *Connection) {
	p := b.s.providers[c.Provider]
	p.All = append(p.All, c)
	if c.Active {
		p.Connections = append(p.Connections, c)
	}
	b.s.connections[c.ID] = c
}

// fromEnvironment makes a connection for each provider whose usual variable is set and that has none yet, and the ones that
// were discovered on this machine (CFG-2).
func (b *builder) fromEnvironment(have map[string]bool) {
	for _, p := range b.s.Providers {
		if have[p.ID] || !b.mayRead(p) {
			continue
		}
		for _, name := range p.KeyEnv {
			text, _ := b.in.Env(name)
			if text = strings.TrimSpace(text); text != "" {
				b.synthetic(ConnectionInput{ID: "env-" + p.ID, Provider: p.ID, APIKey: text}, ByEnv)
				b.s.Found = append(b.s.Found, name)
				have[p.ID] = true
				break
			}
		}
	}
	for _, c := range b.in.Discovered {
		if !have[c.Provider] {
			b.synthetic(c, ByEnv)
		}
	}
}

func (b *builder) demo() {
	if b.s.providers[DemoProvider] == nil {
		b.faults = append(b.faults, document.Fault{Message: "the demo needs the plugin demo, which is not loaded"})
		return
	}
	b.synthetic(ConnectionInput{ID: "demo-a", Provider: DemoProvider, AuthType: wire.AuthLocal}, ByDemo)
	b.synthetic(ConnectionInput{ID: "demo-b", Provider: DemoProvider, AuthType: wire.AuthLocal}, ByDemo)
}

// synthetic adds a connection that no document holds. An id that a document has wins.
func (b *builder) synthetic(c ConnectionInput, by ManagedBy) {
	if _, taken := b.s.connections[c.ID]; taken {
		b.warn("the connection %q is configured, so the one from %s is not made", c.ID, by)
		return
	}
	it := &item[ConnectionInput]{Entry: Entry[ConnectionInput]{Object: c, Meta: Meta{Revision: 1, ManagedBy: by}}, kind: "connection", id: c.ID, lenient: true}
	made := b.connection(it)
	if b.settle(it.owner(), it.faults) {
		b.add(made)
	}
}

// warnOfLimits names the limits of an account that are checked and kept, and that nothing enforces yet: they must not be taken
// for protection.
func (b *builder) warnOfLimits(o *ConnectionInput) {
	var idle []string
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"max_concurrent", o.MaxConcurrent != nil}, {"concurrency_group", o.ConcurrencyGroup != nil},
		{"rate_limit_protection", o.RateLimitProtection != nil && *o.RateLimitProtection},
		{"rate_limit_overrides", o.RateLimitOverrides != nil}, {"quota_window_thresholds", len(o.QuotaWindowThresholds) > 0},
	} {
		if f.given {
			idle = append(idle, f.name)
		}
	}
	if len(idle) > 0 {
		b.warn("connection %q: %s have no effect yet: nothing limits requests by account so far", o.ID, strings.Join(idle, ", "))
	}
}

func (b *builder) connection(it *item[ConnectionInput]) *Connection {
	o := &it.Object
	c := &Connection{
		ID: o.ID, Name: orText(o.Name, o.ID), Provider: o.Provider, AuthType: o.AuthType, Priority: 1, Active: true,
		AllowPrivate: o.AllowPrivate, Models: slices.Clone(o.Models), ExcludedModels: slices.Clone(o.ExcludedModels),
		MaxConcurrent: o.MaxConcurrent, ConcurrencyGroup: o.ConcurrencyGroup, Meta: it.Meta,
	}
	set(&c.Priority, o.Priority)
	set(&c.Active, o.IsActive)
	set(&c.BaseURL, o.BaseURL)
	set(&c.RateProtection, o.RateLimitProtection)
	if b.in.Stored != nil && it.Meta.ManagedBy != ByAPI {
		if on, said := b.in.Stored.Protection[o.ID]; said {
			c.RateProtection = on
		}
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	b.connectionFields(it)
	overrides(it, c)
	b.warnOfLimits(o)
	secrets(it, c)
	data(it, c)
	p := b.s.providers[o.Provider]
	if p == nil {
		it.fault("provider", "there is no provider %q%s", o.Provider, didYouMean(o.Provider, slices.Sorted(maps.Keys(b.s.providers))))
		return c
	}
	c.Provider = p.ID
	if c.AuthType == "" {
		c.AuthType = p.Auth
		if p.Auth == wire.AuthLocal && c.Secrets[SecretAPIKey].Set() {
			c.AuthType = wire.AuthAPIKey // a local server that was started with a key: plans for local accounts send none
		}
	}
	credentials(it, c)
	if it.Meta.ManagedBy == ByAPI && c.BaseURL != "" {
		if err := CheckBaseURL(c.BaseURL, p.Category, c.AllowPrivate || p.AllowPrivate); err != nil {
			it.fault("baseUrl", "%s", err)
		}
	}
	c.CredentialRevision = max(it.CredentialRevision, b.credentialRevision(c))
	return c
}

func (b *builder) connectionFields(it *item[ConnectionInput]) {
	o := &it.Object
	if !connectionID.MatchString(o.ID) {
		it.fault("id", "must be 1 to 128 of letters, digits, dot, _ and -, and begin with a letter or digit")
	}
	if utf8.RuneCountInString(o.Name) > 200 {
		it.fault("name", "must have 1 to 200 characters")
	}
	if o.Priority != nil && (*o.Priority < 1 || *o.Priority > 1000) {
		it.fault("priority", "must be 1 to 1000")
	}
	if !slices.Contains([]wire.Auth{"", wire.AuthAPIKey, wire.AuthOAuth, wire.AuthLocal}, o.AuthType) {
		it.fault("authType", "must be api_key, oauth or local")
	}
	if o.MaxConcurrent != nil && (*o.MaxConcurrent < 0 || *o.MaxConcurrent > 10_000) {
		it.fault("maxConcurrent", "must be 0 to 10000")
	}
	if o.BaseURL != nil && *o.BaseURL != "" {
		if _, err := parseBaseURL(*o.BaseURL); err != nil {
			it.fault("baseUrl", "%s", err)
		}
	}
	for window, share := range o.QuotaWindowThresholds {
		if share < 0 || share > 100 {
			it.fault(document.Join("quotaWindowThresholds", window), "must be 0 to 100")
		}
	}
}

// overrides checks the limits of an account and keeps them as JSON for the gates that read them (QUE-4).
func overrides(it *item[ConnectionInput], c *Connection) {
	if thresholds := it.Object.QuotaWindowThresholds; thresholds != nil {
		c.QuotaThresholds, _ = json.Marshal(thresholds)
	}
	o := it.Object.RateLimitOverrides
	if o == nil {
		return
	}
	bound := func(field string, v *int64, limit int64) {
		if v != nil && (*v < 0 || *v > limit) {
			it.fault("rateLimitOverrides."+field, "must be 0 to %d", limit)
		}
	}
	bound("rpm", o.RPM, 1_000_000)
	bound("minTime", o.MinTime, 60_000)
	bound("maxConcurrent", o.MaxConcurrent, 10_000)
	bound("maxWaitMs", (*int64)(o.MaxWait), 86_400_000)
	bound("executionMaxWaitMs", (*int64)(o.ExecutionMaxWait), 86_400_000)
	bound("tpm", o.TPM, 100_000_000)
	bound("tpd", o.TPD, 10_000_000_000)
	for _, model := range slices.Sorted(maps.Keys(o.ModelConcurrency)) {
		if n := o.ModelConcurrency[model]; n < 0 || n > 10_000 {
			it.fault(document.Join("rateLimitOverrides.modelConcurrency", model), "must be 0 to 10000")
		}
	}
	c.RateLimitOverrides, _ = json.Marshal(o) // numbers and texts always encode
}

// secrets gathers the credentials under the names that plans use.
func secrets(it *item[ConnectionInput], c *Connection) {
	o := &it.Object
	c.Secrets = map[string]Secret{}
	for name, text := range o.Secrets {
		c.Secrets[name] = NewSecret(text)
	}
	for name, text := range map[string]string{SecretAPIKey: o.APIKey, SecretAccessToken: o.AccessToken, SecretRefreshToken: o.RefreshToken} {
		if text != "" {
			c.Secrets[name] = NewSecret(text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		if strings.ContainsAny(c.Secrets[name].Reveal(), "\r\n\x00") {
			it.fault(secretField(name), "must not hold a line break")
		}
		if !c.Secrets[name].Set() {
			delete(c.Secrets, name)
		}
	}
}

func secretField(name string) string {
	switch name {
	case SecretAPIKey:
		return "apiKey"
	case SecretAccessToken:
		return "accessToken"
	case SecretRefreshToken:
		return "refreshToken"
	}
	return document.Join("secrets", name)
}

// credentials checks that what the way to authenticate asks for is there (OBJ-9).
func credentials(it *item[ConnectionInput], c *Connection) {
	if len(c.Secrets) > 0 {
		return
	}
	switch c.AuthType {
	case wire.AuthAPIKey:
		it.fault("apiKey", "is missing; provider %s authenticates with a key", c.Provider)
	case wire.AuthOAuth:
		it.fault("accessToken", "is missing; provider %s authenticates with tokens", c.Provider)
	}
}

// data takes the provider's own fields; plans see those that are text, number or boolean.
func data(it *item[ConnectionInput], c *Connection) {
	c.Data = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(it.Object.ProviderSpecificData)) {
		n, faults := document.ParseJSON("", it.Object.ProviderSpecificData[name])
		if len(faults) > 0 {
			it.fault(document.Join("providerSpecificData", name), "is not valid JSON")
			continue
		}
		switch n.Kind {
		case document.Text, document.Number, document.Bool:
			c.Data[name] = n.Text
		}
	}
	c.DisableCooling = string(it.Object.ProviderSpecificData["disableCooling"]) == "true"
	c.RateLimitReset = rateLimitReset(it)
	c.Rotation, c.EgressIP = rotation(it), egressIP(it)
}

// rateLimitReset reads how long a rate-limited connection is to rest (COOL-20). It has the bounds of the provider's own
// (COOL-22).
func rateLimitReset(it *item[ConnectionInput]) time.Duration {
	var overrides struct {
		Seconds *int64 `json:"rateLimitResetSeconds"`
	}
	raw, given := it.Object.ProviderSpecificData["rotationOverrides"]
	if !given {
		return 0
	}
	if err := json.Unmarshal(raw, &overrides); err != nil || overrides.Seconds != nil && (*overrides.Seconds < 0 || *overrides.Seconds > 21600) {
		it.fault("providerSpecificData.rotationOverrides", "rateLimitResetSeconds must be a whole number from 1 to 21600; 0 or null unsets it")
		return 0
	}
	if overrides.Seconds == nil {
		return 0
	}
	return time.Duration(*overrides.Seconds) * time.Second
}

// credentialRevision goes on from the snapshot in force: one above it when secrets, data or address differ, so that cached
// plans of the old ones are never used. It tells nothing about the secrets, since plugins see it.
func (b *builder) credentialRevision(c *Connection) uint64 {
	if b.in.Previous == nil {
		return 1
	}
	old := b.in.Previous.connections[c.ID]
	switch {
	case old == nil:
		return 1
	case maps.Equal(old.Secrets, c.Secrets) && maps.Equal(old.Data, c.Data) && old.BaseURL == c.BaseURL:
		return old.CredentialRevision
	}
	return old.CredentialRevision + 1
}
