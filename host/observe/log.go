package observe

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// LogOptions says how lines are written. The zero value is text at level info.
type LogOptions struct {
	Format string    // text (default) or json
	Level  string    // debug, info (default), warn or error
	Redact *Redactor // replaces known secrets in every message and attribute; nil: nothing is replaced
}

// NewLogger returns a logger that writes to w (OBS-4). It fails on a format or level that is none. The logger is safe for
// concurrent use.
func NewLogger(w io.Writer, o LogOptions) (*slog.Logger, error) {
	level, err := ParseLevel(o.Level)
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler
	switch strings.ToLower(o.Format) {
	case "", "text":
		h = slog.NewTextHandler(w, options)
	case "json":
		h = slog.NewJSONHandler(w, options)
	default:
		return nil, fmt.Errorf("log format %q is unknown: use text or json", o.Format)
	}
	if o.Redact != nil {
		h = redactingHandler{h, o.Redact}
	}
	return slog.New(h), nil
}

// ParseLevel returns the level that s names; empty is info.
func ParseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q is unknown: use debug, info, warn or error", s)
}
