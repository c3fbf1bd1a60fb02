package catalog

import (
	"encoding/json"
	"net/netip"
	"net/url"
)

// DirectEgress is what stands for the address of this machine, by which every connection without an address of its own leaves.
const DirectEgress = "direct"

// egressFamily names the group of providers that count a quota together by the public address of the caller (OTH-1); empty: they
// count by account. The opencode providers do so together; one that a plugin declares does so for itself. Nothing joins by its
// likeness: opencode-zen sells by account.
func egressFamily(id string, declared bool) string {
	switch id {
	case "opencode", "opencode-go", "opencode-cli":
		return "opencode"
	}
	if declared {
		return id
	}
	return ""
}

// Egress is the address by which calls to t reach the provider, as far as the configuration says: providerSpecificData.egressIp,
// else this machine's own, which all share that have none. A connection that is called at another host than its provider's goes
// through what stands there.
func (t Target) Egress() string {
	c := t.Connection
	if c.EgressIP != "" {
		return c.EgressIP
	}
	if c.BaseURL == "" {
		return DirectEgress
	}
	through := hostOf(c.BaseURL)
	if through == hostOf(t.Provider.BaseURL) {
		return DirectEgress
	}
	return DirectEgress + " via " + through
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	return u.Hostname()
}

// egressIP reads the address by which an account's calls leave, where something outside of the gateway sends them another way than
// this machine's own.
func egressIP(it *item[ConnectionInput]) string {
	raw, given := it.Object.ProviderSpecificData["egressIp"]
	if !given || string(raw) == "null" {
		return ""
	}
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil && text == "" {
		return ""
	}
	addr, parsed := netip.ParseAddr(text)
	if err != nil || parsed != nil || addr.Zone() != "" {
		it.fault("providerSpecificData.egressIp", "must be an IPv4 or IPv6 address, the one that the provider sees; null unsets it")
		return ""
	}
	return addr.Unmap().String()
}
