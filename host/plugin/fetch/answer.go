package fetch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// hidden are headers of an answer that no guest sees: credentials, and those of the connection.
var hidden = map[string]bool{
	"Set-Cookie": true, "Set-Cookie2": true, "Cookie": true, "Authorization": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "X-Api-Key": true, "Connection": true, "Keep-Alive": true, "Transfer-Encoding": true, "Trailer": true,
	"Upgrade": true, "Te": true,
}

// answer reads resp into the JSON of ABI-6 and closes it. A secret that the other side repeats does not reach the guest.
func (r *request) answer(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxAnswer {
		return nil, fmt.Errorf("%w: %s answered more than %d bytes", ErrTooLarge, r.url.Hostname(), MaxAnswer)
	}
	clean := r.redactor()
	out := struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}{resp.StatusCode, map[string]string{}, clean.Replace(string(b))}
	for name, values := range resp.Header {
		if !hidden[name] {
			out.Headers[strings.ToLower(name)] = clean.Replace(strings.Join(values, ", "))
		}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// redactor hides the secrets of this request, as they are and as texts of JSON and of addresses write them.
func (r *request) redactor() *strings.Replacer {
	var pairs []string
	for _, s := range r.secrets {
		quoted, err := json.Marshal(s)
		if err != nil {
			quoted = []byte(`""`)
		}
		for _, form := range []string{s, string(quoted[1 : len(quoted)-1]), url.QueryEscape(s), url.PathEscape(s)} {
			if form != "" {
				pairs = append(pairs, form, "[redacted]")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}
