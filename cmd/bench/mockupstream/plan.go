package main

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// plan says what to do with one request.
type plan struct {
	latency   time.Duration // before the first byte
	size      int           // bytes of assistant text in a non-streaming reply
	chunks    int           // content chunks in a streaming reply
	chunkSize int           // bytes of text in one chunk
	interval  time.Duration // between chunks; 0 writes as fast as the client reads
	failRatio float64       // share of requests answered with failCode
	failCode  int
	cutAfter  int // streaming: drop the connection after this many chunks; 0 never
	resetNow  bool
	hang      bool
	retryIn   string // Retry-After value on 429 and 503
}

// planFor applies, over the flags, what the key, the query, the header X-Mock and a directive in the prompt ask for.
func (m *mock) planFor(r *request, key string) plan {
	p := m.base
	p.key(key)
	prompt := ""
	if _, b, ok := bytes.Cut(r.body[:min(len(r.body), 16<<10)], []byte("[mock:")); ok {
		if b, _, ok = bytes.Cut(b, []byte("]")); ok {
			prompt = strings.ReplaceAll(string(b), ";", "&")
		}
	}
	for _, s := range [3]string{r.rawQuery, r.mock, prompt} { // query syntax: "latency=20ms&size=4096"
		if s == "" {
			continue
		}
		if q, err := url.ParseQuery(s); err == nil {
			p.override(q.Get)
		}
	}
	return p
}

// key reads k-STATUS[-anything], k-reset, k-hang, k-slow-MS, k-flaky-PERCENT and k-cut-CHUNKS.
func (p *plan) key(key string) {
	if !strings.HasPrefix(key, "k-") {
		return
	}
	f := strings.Split(key, "-")
	num := func(i, def int) int {
		if len(f) > i {
			if n, err := strconv.Atoi(f[i]); err == nil {
				return n
			}
		}
		return def
	}
	switch f[1] {
	case "reset":
		p.resetNow = true
	case "hang":
		p.hang = true
	case "slow":
		p.latency = time.Duration(num(2, 1000)) * time.Millisecond
	case "flaky":
		p.failRatio = float64(num(2, 50)) / 100
	case "cut":
		p.cutAfter = num(2, 5)
	default:
		if n := num(1, 0); n >= 400 && n < 600 {
			p.failRatio, p.failCode = 1, n
		}
	}
}

func (p *plan) override(get func(string) string) {
	dur := func(name string, d *time.Duration) {
		if v := get(name); v != "" {
			if x, err := time.ParseDuration(v); err == nil {
				*d = x
			}
		}
	}
	num := func(name string, d *int) {
		if v := get(name); v != "" {
			if x, err := strconv.Atoi(v); err == nil {
				*d = x
			}
		}
	}
	dur("latency", &p.latency)
	dur("interval", &p.interval)
	num("size", &p.size)
	num("chunks", &p.chunks)
	num("chunk_size", &p.chunkSize)
	num("cut_after", &p.cutAfter)
	if v := get("fail_ratio"); v != "" {
		p.failRatio, _ = strconv.ParseFloat(v, 64)
	}
	if v := get("status"); v != "" {
		p.failRatio = 1
		num("status", &p.failCode)
	}
	if v := get("retry_after"); v != "" {
		p.retryIn = v
	}
	switch get("mode") {
	case "hang":
		p.hang = true
	case "reset":
		p.resetNow = true
	}
}
