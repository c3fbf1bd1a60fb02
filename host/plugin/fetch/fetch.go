// Package fetch owns http_fetch (ABI-6): the one way from a plugin's sandbox to the network. It decides where a request may
// go, at each redirect and at each address that is dialled, places secrets that the guest only names, and bounds what
// comes back. It knows nothing of guests: it takes a request in JSON with a grant, and returns an answer in JSON.
package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// The limits of ABI-6.
const (
	// MaxRequest is the most bytes of a request in JSON.
	MaxRequest = 256 << 10
	// MaxAnswer is the most bytes of an answer's body.
	MaxAnswer = 256 << 10
	// MaxRedirects is how many redirects are followed.
	MaxRedirects = 3
	// MaxTime is how long a fetch may take with all its redirects.
	MaxTime = 5 * time.Second

	maxAnswerHeader = 64 << 10
)

// Errors of a fetch; every error of this package wraps one of them.
var (
	// ErrDenied: the grant does not hold the host, the address, the scheme or the secret.
	ErrDenied = errors.New("denied")
	// ErrNotFound: a granted secret has no value.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the request cannot be read, or asks for what no request may have.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: the request or the body of the answer is above its limit.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable: no answer in time, too many redirects, or the other side cannot be reached.
	ErrUnavailable = errors.New("unavailable")
	// ErrCancelled: the call that asked has gone away.
	ErrCancelled = errors.New("cancelled")
)

// Options of a Client. Zero values are usable.
type Options struct {
	Resolver *net.Resolver  // nil: the system's
	RootCAs  *x509.CertPool // nil: the system's
	InFlight int            // fetches of one Lane at once; default 4
}

// Client sends what plugins ask for. One per host; safe for concurrent use. It keeps no connection between fetches, so that
// each is checked where it is dialled and none is used for another plugin. Proxies of the environment are not used: they
// would dial in our place.
type Client struct {
	public   *http.Transport // dials public addresses only
	open     *http.Transport // dials private ones too
	inFlight int
}

// NewClient makes a Client. It holds nothing that has to be closed.
func NewClient(o Options) *Client {
	if o.InFlight <= 0 {
		o.InFlight = 4
	}
	return &Client{public: transport(o, false), open: transport(o, true), inFlight: o.InFlight}
}

func transport(o Options, private bool) *http.Transport {
	d := &net.Dialer{Resolver: o.Resolver, Control: guard(private), KeepAlive: -1}
	return &http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true,
		DisableCompression:     true, // an answer that is packed would hide a secret that it repeats
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}

// Lane is the share of one plugin in a Client: a bounded number of fetches at once. Safe for concurrent use.
type Lane struct {
	client *Client
	slots  chan struct{}

	mu   sync.Mutex
	held []held // guarded by mu
}

// Lane makes a lane of its own.
func (c *Client) Lane() *Lane { return &Lane{client: c, slots: make(chan struct{}, c.inFlight)} }

// Do runs one request, given and answered in the JSON of ABI-6. It waits for a free place in the lane. The end of ctx ends it:
// a cancelled ctx with ErrCancelled, a deadline with ErrUnavailable.
func (l *Lane) Do(ctx context.Context, g Grant, request []byte) ([]byte, error) {
	r, err := parse(request)
	if err != nil {
		return nil, err
	}
	if _, err := g.admit(r.url); err != nil {
		return nil, err
	}
	if err := r.fill(g); err != nil {
		return nil, err
	}
	bounded, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-bounded.Done():
		return nil, ended(ctx, bounded.Err())
	}
	answer, err := l.client.follow(bounded, g, r)
	if err != nil {
		return nil, ended(ctx, err)
	}
	return answer, nil
}

// ended gives a fault that comes from outside the word that a guest understands. No fault holds more of the request than its
// host: what the transport says may name anything.
func ended(ctx context.Context, err error) error {
	for _, known := range []error{ErrDenied, ErrNotFound, ErrInvalid, ErrTooLarge, ErrUnavailable} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ErrCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer in time", ErrUnavailable)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// follow sends r and what it is redirected to. Every hop passes the grant anew.
func (c *Client) follow(ctx context.Context, g Grant, r *request) ([]byte, error) {
	for hop := 0; ; hop++ {
		private, err := g.admit(r.url)
		if err != nil {
			return nil, err
		}
		resp, err := c.send(ctx, r, private)
		if err != nil {
			return nil, err
		}
		next, err := target(resp, r.url)
		if err != nil || next != nil {
			resp.Body.Close()
		}
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			return r.answer(resp)
		case hop == MaxRedirects:
			return nil, fmt.Errorf("%w: more than %d redirects", ErrUnavailable, MaxRedirects)
		}
		r.move(next, resp.StatusCode)
	}
}

func (c *Client) send(ctx context.Context, r *request, private bool) (*http.Response, error) {
	var body io.Reader = http.NoBody
	if r.body != "" {
		body = bytes.NewReader([]byte(r.body))
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%w: the request cannot be sent", ErrInvalid)
	}
	req.URL, req.Host, req.Header = r.url, r.url.Host, r.header.Clone() // what was checked, not what another reading makes of it
	if private {
		return c.open.RoundTrip(req)
	}
	return c.public.RoundTrip(req)
}

// target returns where resp sends us, nil when it is the answer.
func target(resp *http.Response, from *url.URL) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, nil
	}
	u, err := from.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("%w: %s redirects to what is no address", ErrUnavailable, from.Hostname())
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}
