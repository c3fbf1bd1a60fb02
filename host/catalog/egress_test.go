package catalog

import (
	"encoding/json"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

// OTH-1: three providers count by address as one, those of plugins that say so each for itself, and nobody by a likeness; an
// operator's own of a listed name belongs to it.
func TestEgressFamilies(t *testing.T) {
	s, faults := Build(Sources{Described: []Described{{Plugin: "p", Builtin: true, Providers: []wire.Provider{
		{ID: "opencode", BaseURL: "https://a.example"}, {ID: "opencode-zen", BaseURL: "https://a.example"}, {ID: "opencode-go", BaseURL: "https://a.example"},
		{ID: "kilo", BaseURL: "https://b.example", EgressBucketed: true}, {ID: "openai", BaseURL: "https://c.example"},
	}}}, File: &Input{Name: "weir.yaml", Providers: []Entry[ProviderInput]{
		{Object: ProviderInput{ID: "opencode-cli", Executor: text("p"), BaseURL: text("https://a.example")}},
		{Object: ProviderInput{ID: "kilo", Name: text("mine")}},
		{Object: ProviderInput{ID: "my-opencode", Executor: text("p"), BaseURL: text("https://a.example")}},
	}}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for id, want := range map[string]string{
		"opencode": "opencode", "opencode-go": "opencode", "opencode-cli": "opencode", "opencode-zen": "", "kilo": "kilo", "openai": "", "my-opencode": "",
	} {
		if got := s.Provider(id).EgressFamily; got != want {
			t.Errorf("%s: family %q, want %q", id, got, want)
		}
	}
}

func text(s string) *string { return &s }

// OTH-2: by which address calls of a connection reach its provider.
func TestEgress(t *testing.T) {
	p := &Provider{ID: "opencode", BaseURL: "https://opencode.example/zen/v1"}
	for _, c := range []struct {
		c    Connection
		want string
	}{
		{Connection{}, "direct"},
		{Connection{BaseURL: "https://opencode.example/go/v1"}, "direct"},
		{Connection{BaseURL: "https://relay.example:8443/v1"}, "direct via relay.example"},
		{Connection{BaseURL: "https://relay.example/v1", EgressIP: "192.0.2.1"}, "192.0.2.1"},
	} {
		if got := (Target{Provider: p, Connection: &c.c}).Egress(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.c, got, c.want)
		}
	}
}

// OTH-2: egressIp of a connection is an address, in one way of writing.
func TestEgressIP(t *testing.T) {
	for raw, want := range map[string]string{`"192.0.2.7"`: "192.0.2.7", `"::ffff:192.0.2.7"`: "192.0.2.7", `"2001:DB8::1"`: "2001:db8::1", `null`: "", `""`: ""} {
		it := &item[ConnectionInput]{Entry: Entry[ConnectionInput]{Object: ConnectionInput{ProviderSpecificData: map[string]json.RawMessage{"egressIp": json.RawMessage(raw)}}}}
		if got := egressIP(it); got != want || len(it.faults) > 0 {
			t.Errorf("%s: %q %v", raw, got, it.faults)
		}
	}
	for _, raw := range []string{`"proxy.example"`, `7`, `"192.0.2.0/24"`, `"fe80::1%eth0"`, `{}`} {
		it := &item[ConnectionInput]{Entry: Entry[ConnectionInput]{Saving: true, Object: ConnectionInput{ProviderSpecificData: map[string]json.RawMessage{"egressIp": json.RawMessage(raw)}}}}
		if got := egressIP(it); got != "" || len(it.faults) != 1 || it.faults[0].Path != "providerSpecificData.egressIp" {
			t.Errorf("%s: %q %v", raw, got, it.faults)
		}
	}
}
