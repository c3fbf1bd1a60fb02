package catalog

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// metadataHosts are names of the services that hand a machine's own credentials to whoever asks (SEC-5).
var metadataHosts = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

// metadataAddresses are the addresses of such services outside the link-local ranges: Alibaba, Oracle, AWS over IPv6, Azure.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("168.63.129.16"),
}

// CheckBaseURL says whether a base address may be set through the API (SEC-5): never one of a link-local or metadata
// address, and a private or loopback one only with category local or allowPrivate. Names are judged by how they are
// written; what they resolve to is the dialer's to check.
func CheckBaseURL(text string, category Category, allowPrivate bool) error {
	u, err := parseBaseURL(text)
	if err != nil {
		return err
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if slices.Contains(metadataHosts, host) {
		return fmt.Errorf("points at %s, which hands out this machine's own credentials; that is never allowed", host)
	}
	private := host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".local") ||
		strings.HasSuffix(host, ".internal") || !strings.Contains(host, ".")
	if addr, ok := address(host); ok {
		if Forbidden(addr) {
			return fmt.Errorf("points at %s, a link-local or metadata address; that is never allowed", addr)
		}
		private = Private(addr)
	}
	if private && category != Local && !allowPrivate {
		return fmt.Errorf("points at %s, which is on this machine or a private network; set allowPrivate, or category local for the provider", host)
	}
	return nil
}

// Forbidden says whether an address is one that no upstream may have when the API set it: link-local, multicast,
// unspecified, or a metadata service.
func Forbidden(addr netip.Addr) bool {
	addr = embedded(addr)
	return addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || slices.Contains(metadataAddresses, addr)
}

// Private says whether an address is loopback, private or shared by a carrier.
func Private(addr netip.Addr) bool {
	addr = embedded(addr)
	return addr.IsLoopback() || addr.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(addr) ||
		netip.MustParsePrefix("0.0.0.0/8").Contains(addr)
}

// embedded returns the IPv4 address that an IPv6 one stands for (mapped, NAT64, 6to4), else addr itself without its zone.
func embedded(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}

// address reads a host as an address, also in the old spellings that resolvers take: 2130706433, 0x7f.1, 127.1.
func address(host string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, true
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		last := i == len(parts)-1
		switch {
		case err != nil || strings.ContainsRune(part, '_'), !last && n > 255:
			return netip.Addr{}, false
		case last && n >= 1<<(8*(5-len(parts))):
			return netip.Addr{}, false
		case last:
			sum = sum<<(8*(5-len(parts))) | n
		default:
			sum = sum<<8 | n
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

// parseBaseURL checks the form of a base address wherever it was set.
func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL") // the text may hold a credential, so it is not repeated
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("must be a URL such as https://api.example.com/v1")
	case u.User != nil:
		return nil, errors.New("must not hold a user name or password; give credentials as api_key or secrets")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("must not hold a query or fragment")
	}
	return u, nil
}
