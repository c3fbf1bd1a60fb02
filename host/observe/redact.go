package observe

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

// redacted stands where a secret stood.
const redacted = "[redacted]"

// shortestSecret keeps short values out of the set: replacing every "demo" in a log would hide more than it protects.
const shortestSecret = 8

// Redactor replaces known secrets in texts (DATA-1). The zero value knows none. Safe for concurrent use.
type Redactor struct {
	replacer atomic.Pointer[strings.Replacer]
}

// Know replaces the set of known secrets. Texts under eight bytes are left out.
func (r *Redactor) Know(secrets []string) {
	known := slices.Clone(secrets)
	known = slices.DeleteFunc(known, func(s string) bool { return len(s) < shortestSecret })
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) }) // a secret that holds another goes first
	pairs := make([]string, 0, 2*len(known))
	for _, s := range known {
		pairs = append(pairs, s, redacted)
	}
	r.replacer.Store(strings.NewReplacer(pairs...))
}

// Text returns s without known secrets.
func (r *Redactor) Text(s string) string {
	if p := r.replacer.Load(); p != nil {
		return p.Replace(s)
	}
	return s
}

// redactingHandler passes every text of a record through a Redactor.
type redactingHandler struct {
	slog.Handler
	redact *Redactor
}

func (h redactingHandler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.redact.Text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h redactingHandler) WithAttrs(as []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(as))
	for i, a := range as {
		clean[i] = h.attr(a)
	}
	return redactingHandler{h.Handler.WithAttrs(clean), h.redact}
}

func (h redactingHandler) WithGroup(name string) slog.Handler {
	return redactingHandler{h.Handler.WithGroup(name), h.redact}
}

func (h redactingHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.redact.Text(v.String()))
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = h.attr(g)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
	case slog.KindAny:
		return slog.String(a.Key, h.redact.Text(fmt.Sprint(v.Any())))
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// Redacting returns a logger that writes where l does, without the secrets that r knows at that time.
func Redacting(l *slog.Logger, r *Redactor) *slog.Logger {
	return slog.New(redactingHandler{l.Handler(), r})
}
