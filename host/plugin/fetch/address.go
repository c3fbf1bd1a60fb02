package fetch

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/weirgate/weir/host/catalog"
)

// guard looks at each address that is dialled, after its name was resolved. So it does not matter what the name resolved to
// before.
func guard(private bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s is no address", ErrDenied, address)
		}
		for _, addr := range meanings(ap.Addr()) {
			switch {
			case catalog.Forbidden(addr):
				return fmt.Errorf("%w: link-local and metadata addresses are never dialled", ErrDenied)
			case !private && !public(addr):
				return fmt.Errorf("%w: the name is at a private address; the operator grants those by name", ErrDenied)
			}
		}
		return nil
	}
}

// The forms of IPv6 that carry an IPv4 address to which a gateway may deliver.
var carriers = []struct {
	prefix netip.Prefix
	at     [4]int // where the bytes of the IPv4 address stand
	flip   bool   // its bits are inverted
}{
	{netip.MustParsePrefix("64:ff9b::/96"), atEnd, false},           // NAT64
	{localNAT64, atEnd, false},                                      // written at the end, as with a longer prefix
	{localNAT64, [4]int{6, 7, 9, 10}, false},                        // written behind the prefix (RFC 6052)
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}, false}, // 6to4
	{netip.MustParsePrefix("2001::/32"), atEnd, true},               // Teredo, the client
	{netip.MustParsePrefix("2001::/32"), [4]int{4, 5, 6, 7}, false}, // Teredo, its server
	{netip.MustParsePrefix("::/96"), atEnd, false},                  // IPv4-compatible
}

var (
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
	atEnd      = [4]int{12, 13, 14, 15}
)

// meanings are addr itself and the IPv4 addresses that it stands for.
func meanings(addr netip.Addr) []netip.Addr {
	addr = addr.Unmap().WithZone("")
	list := []netip.Addr{addr}
	if !addr.Is6() || addr.IsLoopback() || addr.IsUnspecified() {
		return list
	}
	b := addr.As16()
	for _, c := range carriers {
		if !c.prefix.Contains(addr) {
			continue
		}
		var v4 [4]byte
		for i, at := range c.at {
			if v4[i] = b[at]; c.flip {
				v4[i] = ^v4[i]
			}
		}
		if v := netip.AddrFrom4(v4); c.prefix != localNAT64 || !v.IsUnspecified() { // there the other reading is meant
			list = append(list, v)
		}
	}
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP, below any prefix
		list = append(list, netip.AddrFrom4([4]byte(b[12:])))
	}
	return list
}

// special are the ranges that are nobody's on the public network, beyond loopback, private and shared ones.
var special = []netip.Prefix{
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("fec0::/10"),
}

func public(addr netip.Addr) bool {
	if catalog.Private(addr) || !addr.IsGlobalUnicast() {
		return false
	}
	for _, p := range special {
		if p.Contains(addr) {
			return false
		}
	}
	return true
}
