package main

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

const nonce = "000000000000"

// requestTemplate builds the request once; nonceAt is where each send puts its own number, so
// that no two bodies are equal and no cache or de-duplication in the gateway helps it.
func requestTemplate(o options) (host string, req []byte, nonceAt int, err error) {
	u, err := url.Parse(o.base)
	if err != nil {
		return "", nil, 0, err
	}
	directive := ""
	if o.mock != "" {
		directive = "[mock:" + o.mock + "] "
	}
	pre := fmt.Sprintf(`{"model":%q,"stream":%v,"max_tokens":1024,"temperature":0.7,"messages":[{"role":"user","content":"%s#`, o.model, o.stream, directive)
	post := `"}]}`
	fill := max(0, o.body-len(pre)-len(nonce)-len(post)-1)
	const words = "explain how a gateway should behave when one of its upstream accounts is throttled and another is not "
	body := pre + nonce + " " + strings.Repeat(words, fill/len(words)+1)[:fill] + post

	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: */*\r\nUser-Agent: bench-loadgen\r\n", u.Path, o.path, u.Host)
	if strings.HasSuffix(o.path, "/messages") {
		fmt.Fprintf(&b, "X-Api-Key: %s\r\nAnthropic-Version: 2023-06-01\r\n", o.key)
	}
	fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", o.key)
	for _, h := range o.headers {
		fmt.Fprintf(&b, "%s\r\n", h)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
	nonceAt = b.Len() + len(pre)
	b.WriteString(body)
	host = u.Host
	if u.Port() == "" {
		host += ":80"
	}
	return host, b.Bytes(), nonceAt, nil
}

func putNonce(dst []byte, n int64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}
