package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// Client sends prepared requests. One per host; safe for concurrent use.
type Client struct {
	open   *http.Transport // may dial private addresses
	public *http.Transport // may not (SEC-5)
}

// Options of a Client. Zero values are usable.
type Options struct {
	ConnectTimeout time.Duration // default 30 s
	IdlePerHost    int           // idle connections kept to one host; default 512
	RootCAs        *tls.Config
}

// NewClient makes a client whose connections are pooled, whose redirects are never followed (SEC-5), and whose answers are
// never unpacked behind our back.
func NewClient(o Options) *Client {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 30 * time.Second
	}
	if o.IdlePerHost <= 0 {
		o.IdlePerHost = 512
	}
	return &Client{open: transport(o, true), public: transport(o, false)}
}

func transport(o Options, private bool) *http.Transport {
	d := &net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 30 * time.Second, Control: dialGuard(private)}
	t := &http.Transport{
		DialContext:           dialer(d),
		MaxIdleConns:          8 * o.IdlePerHost,
		MaxIdleConnsPerHost:   o.IdlePerHost,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   o.ConnectTimeout,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
	}
	if o.RootCAs != nil {
		t.TLSClientConfig = o.RootCAs.Clone()
	}
	return t
}

// connectLimit is the key of a plan's connect timeout: the transport dials on its own and takes nothing but a context along.
type connectLimit struct{}

// dialer dials within a plan's time, if it gives one, connections that take a request body out of memory in one piece.
func dialer(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if limit, ok := ctx.Value(connectLimit{}).(time.Duration); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		c, err := d.DialContext(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok {
			return &bodyConn{tcp}, nil
		}
		return c, err
	}
}

// bodyConn writes a body that lies in memory as it lies. A bare connection has it copied through a buffer of 32 KiB that is
// allocated for each request: 12 % of the cost of a 100 KB request.
type bodyConn struct{ *net.TCPConn }

// ReadFrom is how the transport hands a body over: limited to its Content-Length, which ours have to the byte.
func (c *bodyConn) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		if body, ok := l.R.(io.WriterTo); ok {
			n, err := body.WriteTo(c.TCPConn)
			l.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// ErrAddress: the address that a name resolved to may not be dialled (SEC-5).
var ErrAddress = errors.New("address not allowed")

// dialGuard looks at the address that is really dialled, after the name was resolved: link-local ones, where clouds keep
// their metadata services, never; private and loopback ones only when the provider may have them.
func dialGuard(private bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s", ErrAddress, address)
		}
		switch ip := ap.Addr(); {
		case catalog.Forbidden(ip):
			return fmt.Errorf("%w: link-local and metadata addresses are never dialled", ErrAddress)
		case !private && catalog.Private(ip):
			return fmt.Errorf("%w: a private address needs category local or allow_private", ErrAddress)
		}
		return nil
	}
}

// Close drops idle connections.
func (c *Client) Close() {
	c.open.CloseIdleConnections()
	c.public.CloseIdleConnections()
}

// Send starts one upstream request; payload is its body (host/body gives one that the transport sends in one go). The
// caller closes the answer's body. An error is a transport failure, or wraps ErrPlanInvalid.
func (c *Client) Send(ctx context.Context, p *Prepared, m Moment, payload io.ReadCloser, length int64) (*http.Response, error) {
	u, header, err := p.forRequest(m)
	if err != nil {
		if payload != nil {
			payload.Close()
		}
		return nil, err
	}
	if p.Connect > 0 {
		ctx = context.WithValue(ctx, connectLimit{}, p.Connect)
	}
	req := (&http.Request{
		Method: p.Method, URL: u, Host: u.Host, Header: header, Body: payload, ContentLength: length,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if p.Private {
		return c.open.RoundTrip(req)
	}
	return c.public.RoundTrip(req)
}

// forRequest adds what changes from request to request; the static header map is shared when nothing does.
func (p *Prepared) forRequest(m Moment) (*url.URL, http.Header, error) {
	header := p.header
	if len(p.perCall) > 0 {
		header = header.Clone()
		for _, h := range p.perCall {
			value, err := h.text.render(p.both(m))
			if err != nil {
				return nil, nil, err
			}
			if err := setHeader(header, h.name, value); err != nil {
				return nil, nil, err
			}
		}
	}
	if p.sameWire {
		if extra := addForwarded(nil, header, m.Header); extra != nil {
			header = extra
		}
	}
	if len(m.Extra) > 0 {
		with := make(http.Header, len(header)+len(m.Extra))
		maps.Copy(with, header)
		maps.Copy(with, m.Extra)
		header = with
	}
	u := p.url
	if u == nil {
		var err error
		if u, err = p.perRequestURL(m); err != nil {
			return nil, nil, err
		}
	}
	if m.Query == "" {
		return u, header, nil
	}
	with := *u
	if with.RawQuery != "" {
		with.RawQuery += "&"
	}
	with.RawQuery += m.Query
	return &with, header, nil
}

func (p *Prepared) both(m Moment) values {
	return func(name string) (string, bool) {
		if text, ok := m.value(name); ok {
			return text, true
		}
		return p.static(name)
	}
}

// TransportCode is the error.code of a reply without an HTTP answer (ABI-4).
func TransportCode(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var rec tls.RecordHeaderError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return wire.TransportTimeout
	case errors.As(err, &dns):
		return wire.TransportDNS
	case errors.As(err, &rec), errors.As(err, &cert):
		return wire.TransportTLS
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return wire.TransportReset
	case errors.As(err, &op) && op.Op == "dial":
		return wire.TransportConnect
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return wire.TransportEOF
	}
	return wire.TransportConnect
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
