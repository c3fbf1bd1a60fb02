package fetch

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// network is a small internet of its own: names, certificates and sites.
type network struct {
	t        *testing.T
	ca       *x509.Certificate
	caKey    *ecdsa.PrivateKey
	resolver *net.Resolver
	client   *Client

	mu    sync.Mutex
	names map[string][]netip.Addr // the answers, one after the other; the last one stays
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, names: map[string][]netip.Addr{}}
	n.ca, n.caKey, _ = n.certificate("ca", true)
	pool := x509.NewCertPool()
	pool.AddCert(n.ca)
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); n.serveDNS(dns) }()
	t.Cleanup(func() { dns.Close(); <-done })
	n.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	n.client = NewClient(Options{Resolver: n.resolver, RootCAs: pool})
	return n
}

func (n *network) certificate(name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	n.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		n.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: ca, BasicConstraintsValid: ca,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := c, key
	if !ca {
		parent, signer = n.ca, n.caKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		n.t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		n.t.Fatal(err)
	}
	return c, key, der
}

// resolve sets the answers for a name.
func (n *network) resolve(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = nil
	for _, a := range addrs {
		n.names[name] = append(n.names[name], netip.MustParseAddr(a))
	}
}

// serveDNS answers questions for A; everything else has no answer.
func (n *network) serveDNS(c net.PacketConn) {
	b := make([]byte, 512)
	for {
		size, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		var labels []string
		at := 12
		for at < size && b[at] != 0 {
			labels = append(labels, string(b[at+1:at+1+int(b[at])]))
			at += 1 + int(b[at])
		}
		at += 5 // the end, type and class
		kind := b[at-3]
		name := strings.ToLower(strings.Join(labels, "."))
		out := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, b[12:at]...)
		n.mu.Lock()
		addrs := n.names[name]
		switch {
		case len(addrs) == 0:
			out[3] |= 3 // no such name
		case kind == 1:
			v4 := addrs[0].As4()
			out[7] = 1
			out = append(append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), v4[:]...)
			if len(addrs) > 1 {
				n.names[name] = addrs[1:]
			}
		}
		n.mu.Unlock()
		_, _ = c.WriteTo(out, from)
	}
}

// site is a server for one name.
type site struct {
	name, port string
	hits       atomic.Int64
	mu         sync.Mutex
	got        []received
}

type received struct {
	*http.Request
	body string
}

func (n *network) site(name string, h http.HandlerFunc) *site {
	n.t.Helper()
	s := &site{name: name}
	_, key, der := n.certificate(name, false)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		s.got = append(s.got, received{r.Clone(context.Background()), string(body)})
		s.mu.Unlock()
		s.hits.Add(1)
		if h != nil {
			h(w, r)
		}
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	n.t.Cleanup(srv.Close)
	s.port = srv.Listener.Addr().String()[len("127.0.0.1:"):]
	n.resolve(name, "127.0.0.1")
	return s
}

func (s *site) url(path string) string { return "https://" + s.name + ":" + s.port + path }

// granted is a grant of this site only.
func (s *site) granted() Grant {
	hosts := []string{s.name + ":" + s.port}
	return Grant{Hosts: hosts, Private: hosts}
}

func (s *site) last() received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[len(s.got)-1]
}

func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = nil
	s.hits.Store(0)
}
