package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func TestRedirects(t *testing.T) { // ABI-6, ABI-13, SEC-5
	n := newNetwork(t)
	b := n.site("b.test", func(w http.ResponseWriter, r *http.Request) {
		if back := r.URL.Query().Get("back"); back != "" {
			http.Redirect(w, r, back, http.StatusFound)
			return
		}
		io.WriteString(w, "b")
	})
	a := n.site("a.test", func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Path == "/hops" {
			var left int
			fmt.Sscan(r.URL.Query().Get("n"), &left)
			if left > 0 {
				http.Redirect(w, r, fmt.Sprintf("/hops?n=%d", left-1), http.StatusFound)
				return
			}
		}
		io.WriteString(w, "a")
	})
	both := Grant{Hosts: append(a.granted().Hosts, b.granted().Hosts...), Secret: secrets(map[string]string{"key": key})}
	both.Private = both.Hosts
	headers := map[string]string{"Authorization": "Bearer {{secret.key}}", "X-Mine": "1", "Accept": "{{secret.key}}", "Content-Type": "text/plain"}
	fetch := func(t *testing.T, g Grant, url string) (answered, error) {
		a.forget()
		b.forget()
		return n.do(t, g, map[string]any{"method": "POST", "url": url, "headers": headers, "body": "load"})
	}
	t.Run("within the host everything goes along", func(t *testing.T) {
		got, err := fetch(t, both, a.url("/?to=/end"))
		if r := a.last(); err != nil || got.Body != "a" || r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("X-Mine") != "1" ||
			r.Method != "POST" || r.body != "load" {
			t.Errorf("%+v, %v; sent %+v", got, err, r)
		}
	})
	t.Run("to another granted host without credentials", func(t *testing.T) {
		got, err := fetch(t, both, a.url("/?to="+b.url("/")))
		if err != nil || got.Body != "b" {
			t.Fatalf("%+v, %v", got, err)
		}
		r := b.last()
		if r.Header.Get("Content-Type") != "text/plain" || r.Method != "POST" {
			t.Errorf("sent %+v", r)
		}
		for _, name := range []string{"Authorization", "X-Mine", "Accept"} {
			if v := r.Header.Get(name); v != "" {
				t.Errorf("%s: %s reaches the other host", name, v)
			}
		}
	})
	t.Run("and back again without credentials", func(t *testing.T) {
		got, err := fetch(t, both, a.url("/?to="+b.url("/?back="+a.url("/end"))))
		if err != nil || got.Body != "a" {
			t.Fatalf("%+v, %v", got, err)
		}
		if r := a.last(); r.Header.Get("Authorization") != "" || r.Method != "GET" || r.body != "" {
			t.Errorf("sent %+v", r)
		}
	})
	t.Run("to a host that is not granted", func(t *testing.T) {
		g := a.granted()
		g.Secret = both.Secret
		if got, err := fetch(t, g, a.url("/?to="+b.url("/"))); !errors.Is(err, ErrDenied) || b.hits.Load() != 0 {
			t.Errorf("%+v, %v; %d requests", got, err, b.hits.Load())
		}
	})
	t.Run("to http", func(t *testing.T) {
		if got, err := fetch(t, both, a.url("/?to="+strings.Replace(b.url("/"), "https", "http", 1))); !errors.Is(err, ErrDenied) || b.hits.Load() != 0 {
			t.Errorf("%+v, %v; %d requests", got, err, b.hits.Load())
		}
	})
	t.Run("to a private address", func(t *testing.T) {
		g := both
		g.Private = a.granted().Hosts
		if got, err := fetch(t, g, a.url("/?to="+b.url("/"))); !errors.Is(err, ErrDenied) || b.hits.Load() != 0 {
			t.Errorf("%+v, %v; %d requests", got, err, b.hits.Load())
		}
	})
	t.Run("three", func(t *testing.T) {
		if got, err := fetch(t, both, a.url("/hops?n=3")); err != nil || got.Body != "a" || a.hits.Load() != 4 {
			t.Errorf("%+v, %v; %d requests", got, err, a.hits.Load())
		}
	})
	t.Run("four", func(t *testing.T) {
		if got, err := fetch(t, both, a.url("/hops?n=4")); !errors.Is(err, ErrUnavailable) || a.hits.Load() != 4 {
			t.Errorf("%+v, %v; %d requests", got, err, a.hits.Load())
		}
	})
}

func TestDialledAddress(t *testing.T) { // ABI-6, SEC-5
	n := newNetwork(t)
	a := n.site("a.test", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a") })
	g := a.granted()
	g.Private = nil
	t.Run("private", func(t *testing.T) {
		if got, err := n.do(t, g, map[string]any{"url": a.url("/")}); !errors.Is(err, ErrDenied) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("an answer of DNS that changes", func(t *testing.T) {
		n.resolve("a.test", "93.184.215.14", "127.0.0.1") // the first time public, then ours
		addrs, err := n.resolver.LookupNetIP(t.Context(), "ip4", "a.test")
		if err != nil || addrs[0] != netip.MustParseAddr("93.184.215.14") {
			t.Fatal(addrs, err)
		}
		if got, err := n.do(t, g, map[string]any{"url": a.url("/"), "timeout_ms": 2000}); !errors.Is(err, ErrDenied) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("link-local, whatever is granted", func(t *testing.T) {
		n.resolve("a.test", "169.254.169.254")
		open := a.granted()
		if got, err := n.do(t, open, map[string]any{"url": a.url("/")}); !errors.Is(err, ErrDenied) {
			t.Errorf("%+v, %v", got, err)
		}
	})
	if hits := a.hits.Load(); hits != 0 {
		t.Errorf("%d requests came through", hits)
	}
}

func TestAddresses(t *testing.T) { // ABI-6, SEC-5
	const never, granted, always = "never", "when granted", "always"
	for addr, want := range map[string]string{
		"8.8.8.8": always, "2606:4700:4700::1111": always, "::ffff:8.8.8.8": always, "64:ff9b::808:808": always, "2002:808:808::1": always,
		"127.0.0.1": granted, "127.8.8.8": granted, "::1": granted, "10.0.0.1": granted, "172.31.255.255": granted, "192.168.0.1": granted,
		"100.64.0.1": granted, "0.1.2.3": granted, "fd12::1": granted, "fec0::1": granted, "198.18.0.1": granted, "192.0.2.1": granted,
		"240.0.0.1": granted, "255.255.255.255": granted, "2001:db8::1": granted,
		"::ffff:10.0.0.1": granted, "::ffff:127.0.0.1": granted, "64:ff9b::7f00:1": granted, "64:ff9b::a00:1": granted, "2002:7f00:1::1": granted,
		"2002:c0a8:1::1": granted, "::10.0.0.1": granted, "64:ff9b:1::a00:1": granted, "64:ff9b:1:a00:0:100::": granted, "2001:0:808:808::f5ff:fffe": granted,
		"2606:4700::5efe:a00:1": granted, "2606:4700::200:5efe:a00:1": granted,
		"169.254.169.254": never, "fe80::1": never, "fe80::1%eth0": never, "0.0.0.0": never, "::": never, "224.0.0.1": never, "ff02::1": never,
		"100.100.100.200": never, "192.0.0.192": never, "168.63.129.16": never, "fd00:ec2::254": never,
		"::ffff:169.254.169.254": never, "64:ff9b::a9fe:a9fe": never, "2002:a9fe:a9fe::1": never, "::169.254.169.254": never,
		"2001:0:808:808::5601:5601": never, "64:ff9b:1::a9fe:a9fe": never, "64:ff9b:1:a9fe:a9:fe00::": never, "2606:4700::5efe:a9fe:a9fe": never,
	} {
		dial := func(private bool) bool {
			return guard(private)("tcp", netip.AddrPortFrom(netip.MustParseAddr(addr), 443).String(), nil) == nil
		}
		got := never
		switch {
		case dial(false):
			got = always
		case dial(true):
			got = granted
		}
		if got != want {
			t.Errorf("%s may be dialled %s, want %s", addr, got, want)
		}
	}
	if guard(true)("tcp", "a.test:443", nil) == nil {
		t.Error("a name was taken for an address")
	}
}
