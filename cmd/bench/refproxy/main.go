// Command refproxy is the baseline that a gateway is compared with: the reverse proxy of the standard library with a tuned
// transport. It checks no key, reads no body and chooses nothing.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// bufPool lends the copy buffers of the proxy.
type bufPool struct{ sync.Pool }

func (p *bufPool) Get() []byte  { return *p.Pool.Get().(*[]byte) }
func (p *bufPool) Put(b []byte) { p.Pool.Put(&b) }

func main() {
	listen := flag.String("listen", "127.0.0.1:9200", "address to listen on")
	up := flag.String("upstream", "http://127.0.0.1:9100", "upstream base URL")
	key := flag.String("key", "k-ok", "API key sent upstream")
	flag.Parse()
	u, err := url.Parse(*up)
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s", ln.Addr())
	srv := &http.Server{Handler: proxy(u, *key), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(srv.Serve(ln))
}

// proxy passes everything on to u with that API key.
func proxy(u *url.URL, key string) http.Handler {
	tr := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConns:        4096,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}
	auth := "Bearer " + key
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Header.Set("Authorization", auth)
		},
		Transport:     tr,
		FlushInterval: -1,
		BufferPool:    &bufPool{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}},
	}
}
