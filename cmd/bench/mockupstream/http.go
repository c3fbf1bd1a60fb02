package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// request is one request as far as the mock looks at it.
type request struct {
	method, path, rawQuery string
	key                    string // API key, from whichever header carries it
	mock                   string // X-Mock
	body                   []byte
	closing                bool
}

// conn is one keep-alive connection of a small HTTP/1.1 server: pipelining, sized and chunked bodies in and out. It is
// written by hand since the standard server takes about twice the CPU for these tiny exchanges, on a machine that is
// shared with what is measured.
type conn struct {
	net.Conn
	mock *mock
	br   *bufio.Reader
	bw   *bufio.Writer
	req  request
	body []byte
	dead bool
	// interned strings: a connection sees the same few again and again
	names map[string]string
}

func (m *mock) serveListener(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go (&conn{Conn: c, mock: m, br: bufio.NewReaderSize(c, 16<<10), bw: bufio.NewWriterSize(c, 16<<10), names: map[string]string{}}).loop()
	}
}

func (c *conn) intern(b []byte) string {
	if s, ok := c.names[string(b)]; ok {
		return s
	}
	if len(c.names) > 1000 {
		clear(c.names)
	}
	s := string(b)
	c.names[s] = s
	return s
}

func (c *conn) loop() {
	defer c.Close()
	for {
		if err := c.read(); err != nil {
			return
		}
		c.mock.serve(c, &c.req)
		if c.dead {
			return
		}
		if c.br.Buffered() == 0 || c.req.closing {
			if c.bw.Flush() != nil || c.req.closing {
				return
			}
		}
	}
}

var errBad = errors.New("bad request")

// framing is what the headers say about the body.
type framing struct {
	length          int
	chunked, expect bool
}

// read reads one request.
func (c *conn) read() error {
	r := &c.req
	*r = request{}
	if err := c.readLine(r); err != nil {
		return err
	}
	f, err := c.readHeaders(r)
	if err != nil {
		return err
	}
	if f.expect {
		c.bw.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
		c.bw.Flush()
	}
	c.body = c.body[:0]
	if f.chunked {
		err = c.takeChunks()
	} else {
		err = c.take(f.length)
	}
	r.body = c.body
	return err
}

func (c *conn) readLine(r *request) error {
	l, err := c.br.ReadSlice('\n')
	if err != nil {
		return err
	}
	m, rest, ok := bytes.Cut(l, []byte(" "))
	u, _, ok2 := bytes.Cut(rest, []byte(" "))
	if !ok || !ok2 {
		return errBad
	}
	path, query, _ := bytes.Cut(u, []byte("?"))
	r.method, r.path, r.rawQuery = c.intern(m), c.intern(path), c.intern(query)
	return nil
}

func (c *conn) readHeaders(r *request) (f framing, err error) {
	for {
		l, err := c.br.ReadSlice('\n')
		if err != nil {
			return f, err
		}
		l = bytes.TrimRight(l, "\r\n")
		if len(l) == 0 {
			return f, nil
		}
		k, v, _ := bytes.Cut(l, []byte(":"))
		is := func(name string) bool { return len(k) == len(name) && strings.EqualFold(string(k), name) }
		switch v = bytes.TrimSpace(v); {
		case is("content-length"):
			if f.length, err = strconv.Atoi(string(v)); err != nil || f.length < 0 || f.length > 64<<20 {
				return f, errBad
			}
		case is("authorization"):
			r.key = c.intern(bytes.TrimPrefix(v, []byte("Bearer ")))
		case is("x-api-key"), is("x-goog-api-key"), is("api-key"):
			r.key = c.intern(v)
		case is("x-mock"):
			r.mock = c.intern(v)
		case is("transfer-encoding"):
			f.chunked = true
		case is("expect"):
			f.expect = true
		case is("connection"):
			r.closing = strings.EqualFold(string(v), "close")
		}
	}
}

func (c *conn) takeChunks() error {
	for {
		l, err := c.br.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(l)), 16, 32)
		if err != nil {
			return errBad
		}
		if err := c.take(int(n)); err != nil {
			return err
		}
		if _, err := c.br.Discard(2); err != nil || n == 0 {
			return err
		}
	}
}

func (c *conn) take(n int) error {
	at := len(c.body)
	if cap(c.body) < at+n {
		c.body = append(make([]byte, 0, max(2*cap(c.body), at+n)), c.body...)
	}
	c.body = c.body[:at+n]
	_, err := io.ReadFull(c.br, c.body[at:])
	return err
}

var reasons = map[int]string{200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 408: "Request Timeout", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 529: "Overloaded"}

func (c *conn) head(status int, ctype, extra string) {
	w := c.bw
	w.WriteString("HTTP/1.1 ")
	var n [8]byte
	w.Write(strconv.AppendInt(n[:0], int64(status), 10))
	w.WriteByte(' ')
	w.WriteString(reasons[status])
	w.WriteString("\r\nContent-Type: ")
	w.WriteString(ctype)
	w.WriteString("\r\nDate: ")
	w.WriteString(*c.mock.date.Load())
	w.WriteString("\r\n")
	w.WriteString(extra)
}

// sized sends a whole reply.
func (c *conn) sized(status int, extra string, body []byte) {
	c.head(status, "application/json", extra)
	c.bw.WriteString("Content-Length: ")
	var n [20]byte
	c.bw.Write(strconv.AppendInt(n[:0], int64(len(body)), 10))
	c.bw.WriteString("\r\n\r\n")
	c.bw.Write(body)
}

// piece sends one chunk of a chunked reply and flushes it; an empty piece ends the reply.
func (c *conn) piece(b []byte) error {
	var n [20]byte
	c.bw.Write(strconv.AppendInt(n[:0], int64(len(b)), 16))
	c.bw.WriteString("\r\n")
	c.bw.Write(b)
	c.bw.WriteString("\r\n")
	return c.bw.Flush()
}

// reset drops the connection with a TCP RST.
func (c *conn) reset() {
	c.dead = true
	if t, ok := c.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

// hold waits until the client goes away, at most d.
func (c *conn) hold(d time.Duration) {
	c.dead = true
	c.bw.Flush()
	c.SetReadDeadline(time.Now().Add(d))
	io.Copy(io.Discard, c.br)
}
