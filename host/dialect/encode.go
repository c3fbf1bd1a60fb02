package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// object is a JSON object whose fields keep their order.
type object []Fact

// MarshalJSON writes the fields in order; a name that came before is skipped.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	seen := make(map[string]bool, len(o))
	for _, f := range o {
		if seen[f.Name] {
			continue
		}
		seen[f.Name] = true
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, err := plain(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := plain(f.Value)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain encodes without turning <, > and & into escapes: people read these messages.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Body is the error body of f in dialect d (INF-30, INF-37).
func Body(d wire.Dialect, f Failure) []byte {
	f = f.WithDefaults()
	b, err := plain(errorObject(d, f))
	if err != nil { // a fact that JSON cannot say; the message must still arrive
		f.Facts = nil
		b, _ = plain(errorObject(d, f))
	}
	return b
}

func errorObject(d wire.Dialect, f Failure) object {
	switch d {
	case wire.AnthropicMessages:
		inner := object{{"type", messagesType(f.Status)}, {"message", f.Message}}
		if f.Code != "" {
			inner = append(inner, Fact{"code", f.Code})
		}
		inner = append(inner, f.Facts...)
		return object{{"type", "error"}, {"error", inner}, {"request_id", f.RequestID}}
	case wire.GeminiGenerate:
		return object{{"error", object{
			{"code", StatusFor(d, f.Status)}, {"message", f.Message}, {"status", geminiStatus(f.Status)}, {"details", geminiDetails(f)},
		}}}
	}
	inner := object{{"message", f.Message}, {"type", f.Type}, {"param", param(f.Facts)}, {"code", orNull(f.Code)}}
	return object{{"error", append(inner, f.Facts...)}}
}

// param is the path of the field that is wrong, where a fact names it (TR-31).
func param(facts []Fact) any {
	for _, x := range facts {
		if x.Name == "param" {
			return x.Value
		}
	}
	return nil
}

func geminiDetails(f Failure) []object {
	details := []object{}
	if len(f.Facts) > 0 || f.Code != "" {
		meta := object{}
		for _, x := range f.Facts {
			meta = append(meta, Fact{x.Name, text(x.Value)})
		}
		details = append(details, object{
			{"@type", "type.googleapis.com/google.rpc.ErrorInfo"}, {"reason", f.Code}, {"domain", "weir"}, {"metadata", meta},
		})
	}
	if f.RetryAfter > 0 {
		details = append(details, object{
			{"@type", "type.googleapis.com/google.rpc.RetryInfo"}, {"retryDelay", strconv.FormatInt(Seconds(f.RetryAfter), 10) + "s"},
		})
	}
	return details
}

// text is the form of a value in ErrorInfo.metadata, which holds strings only.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := plain(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Seconds is d in whole seconds, rounded up, at least 1 (INF-40).
func Seconds(d time.Duration) int64 {
	return max(1, int64(math.Ceil(d.Seconds())))
}

// longWait is the wait above which clients are told not to sleep for it (INF-42).
const longWait = 60 * time.Second

// Headers sets what accompanies f: the retry headers of INF-40, and x-should-retry for a wait above a minute or when
// repeating does not help (INF-42, INF-43).
func Headers(h http.Header, f Failure) {
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(Seconds(f.RetryAfter), 10))
		h.Set("Retry-After-Ms", strconv.FormatInt(max(1, f.RetryAfter.Milliseconds()), 10))
	}
	if f.NoRetry || f.RetryAfter > longWait {
		h.Set("X-Should-Retry", "false")
	}
}

// Place is where in a stream its failure is told. Only responses needs it: its events are numbered, and the last one holds the whole
// response.
type Place struct {
	ID       string // of the answer
	Model    string // as the client named it
	Created  int64  // Unix seconds
	Sequence int64  // number of the next event
}

// StreamError is what is sent when a stream that has begun cannot go on, before its connection ends cleanly (INF-34).
func StreamError(d wire.Dialect, f Failure, p Place) []byte {
	f = f.WithDefaults()
	body := Body(d, f)
	switch d {
	case wire.AnthropicMessages:
		return frame("error", body)
	case wire.OpenAIResponses:
		event, _ := plain(object{
			{"type", "error"}, {"sequence_number", p.Sequence}, {"code", orNull(f.Code)}, {"message", f.Message}, {"param", param(f.Facts)},
		})
		failed, _ := plain(object{{"type", "response.failed"}, {"sequence_number", p.Sequence + 1}, {"response", object{
			{"id", p.ID}, {"object", "response"}, {"created_at", p.Created}, {"status", "failed"},
			{"error", object{{"code", orNull(f.Code)}, {"message", f.Message}}}, {"incomplete_details", nil},
			{"model", p.Model}, {"output", []object{}}, {"usage", nil},
		}}})
		return append(frame("error", event), frame("response.failed", failed)...)
	}
	return frame("", body)
}

func frame(event string, data []byte) []byte {
	var b bytes.Buffer
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}
