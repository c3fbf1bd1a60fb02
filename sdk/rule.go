package sdk

import (
	"strconv"

	"github.com/weirgate/weir/sdk/wire"
)

// Rules is an ordered table: the first rule whose conditions all hold decides (ABI-2.1). The host runs it.
type Rules []Rule

// Rule is one rule. The fields up to Stream are conditions; an empty one always holds. Then come the fields of a
// restatement rule, and those of a classifier rule.
type Rule struct {
	ID       string // absent: restate-1, classify-2, ... by the place in the table
	Evidence string // where the payload was seen
	Phase    string // built-in plugins only

	Providers, Models, Endpoints                 []string // globs
	Auth                                         []wire.Auth
	Status, OriginalStatus                       Statuses
	Code, Type                                   []string
	TextContains, TextAll, TextNone, TextMatches []string
	Header, HeaderAll                            []Condition
	JSON, JSONAll                                []Condition
	Stream                                       *bool

	To     int    // the true status
	ToCode string // the true code
	Note   string
	Keep   bool // stop without a change

	Reason        wire.Reason
	Scope         wire.Scope
	Fallback      bool  // true: another target may be tried, also where the reason's default is no
	NoFallback    bool  // true: none may
	CooldownMS    int64 // a length of the author's choice
	Terminal      bool  // needs Permissions.Terminate
	SetStatus     wire.TerminalState
	Exact         bool
	RequestScoped bool
	Message       string
	Breaker       *bool // counts for the provider's breaker; nil: by reason, scope and status
	Confidence    *int  // 0 to 100; nil: sure

	RetryAfter *Reading // when to come back, as the answer says
}

// Statuses are values of HTTP statuses; 0 means no answer.
type Statuses []statusRange

type statusRange struct{ from, to int }

// S lists single statuses.
func S(status ...int) Statuses {
	var s Statuses
	for _, n := range status {
		s = append(s, statusRange{n, n})
	}
	return s
}

// Range is all statuses from one to the other.
func Range(from, to int) Statuses { return Statuses{{from, to}} }

// Condition is a test of a header or of a path in the body.
type Condition struct {
	name, equals, matches string
	how                   byte // e equals, m matches, p present, a absent, z list has zero
}

// Header is a condition on a header of the answer, which must stand in Needs.
func Header(name string) Condition { return Condition{name: name, how: 'p'} }

// Path is a condition on a value of the body: error.details.0.reason.
func Path(path string) Condition { return Condition{name: path, how: 'p'} }

// Equals holds when the text is the value.
func (c Condition) Equals(text string) []Condition {
	c.equals, c.how = text, 'e'
	return []Condition{c}
}

// Matches holds when the RE2 expression finds something in the value.
func (c Condition) Matches(expr string) []Condition {
	c.matches, c.how = expr, 'm'
	return []Condition{c}
}

// Present holds when there is a value.
func (c Condition) Present() []Condition { return []Condition{c} }

// Absent holds when there is none.
func (c Condition) Absent() []Condition {
	c.how = 'a'
	return []Condition{c}
}

// ListHasZero holds when the header is a list of NAME=VALUE with a value of 0.
func (c Condition) ListHasZero() []Condition {
	c.how = 'z'
	return []Condition{c}
}

func (c Condition) write(w *Writer, nameKey, presentKey string) {
	w.Object(func() {
		w.Key(nameKey).Text(c.name)
		switch c.how {
		case 'e':
			w.Key("equals").Text(c.equals)
		case 'm':
			w.Key("matches").Text(c.matches)
		case 'z':
			w.Key("list_has_zero").Bool(true)
		default:
			w.Key(presentKey).Bool(c.how == 'p')
		}
	})
}

// Unit is how a time is written in an answer.
type Unit string

// The units of ABI-2.1.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Minutes      Unit = "m"
	Hours        Unit = "h"
	UnixSeconds  Unit = "unix_s"
	UnixMillis   Unit = "unix_ms"
	RFC3339      Unit = "rfc3339"
	HTTPDate     Unit = "http_date"
	Duration     Unit = "duration"
	Countdown    Unit = "countdown"
)

// NextMidnight is no time in the answer but the next midnight of a zone: "Asia/Shanghai", "UTC".
func NextMidnight(zone string) Unit { return Unit("next_midnight:" + zone) }

// Reading says where a time stands in an answer.
type Reading struct {
	from, match string
	unit        Unit
	fixedMS     int64
	required    bool
}

// FromText reads the first group of an RE2 expression in the body.
func FromText(expr string, unit Unit) *Reading {
	return &Reading{from: "text", match: expr, unit: unit}
}

// FromHeader reads a header, which must stand in Needs.
func FromHeader(name string, unit Unit) *Reading { return &Reading{from: "header:" + name, unit: unit} }

// FromJSON reads a value of the body.
func FromJSON(path string, unit Unit) *Reading { return &Reading{from: "json:" + path, unit: unit} }

// FromHint takes the host's own reading of the answer.
func FromHint() *Reading { return &Reading{from: "hint"} }

// After is a fixed length, in milliseconds.
func After(ms int64) *Reading { return &Reading{fixedMS: ms} }

// Required makes the rule hold only when there is a readable time.
func (r Reading) Required() *Reading {
	r.required = true
	return &r
}

func (r *Reading) write(w *Writer) {
	if r.fixedMS > 0 {
		w.milliseconds(r.fixedMS)
		return
	}
	w.Object(func() {
		w.Key("from").Text(r.from)
		w.text("match", r.match)
		w.text("unit", string(r.unit))
		w.bool("required", r.required)
	})
}

// write writes the table; kind begins the ids of rules that have none.
func (rs Rules) write(w *Writer, kind string) {
	for i := range rs {
		r := &rs[i]
		w.Object(func() {
			id := r.ID
			if id == "" {
				id = kind + "-" + strconv.Itoa(i+1)
			}
			w.Key("id").Text(id)
			w.text("evidence", r.Evidence)
			w.text("phase", r.Phase)
			r.conditions(w)
			w.Key("then").Object(func() { r.then(w) })
		})
	}
}

func (r *Rule) conditions(w *Writer) {
	w.texts("providers", r.Providers)
	w.texts("models", r.Models)
	w.texts("endpoints", r.Endpoints)
	auth := make([]string, len(r.Auth))
	for i, a := range r.Auth {
		auth[i] = string(a)
	}
	w.texts("auth", auth)
	r.Status.write(w, "status")
	r.OriginalStatus.write(w, "original_status")
	w.texts("code", r.Code)
	w.texts("type", r.Type)
	w.texts("text_contains", r.TextContains)
	w.texts("text_all", r.TextAll)
	w.texts("text_none", r.TextNone)
	w.texts("text_matches", r.TextMatches)
	conditions(w, "header", r.Header, "name", "present")
	conditions(w, "header_all", r.HeaderAll, "name", "present")
	conditions(w, "json", r.JSON, "path", "exists")
	conditions(w, "json_all", r.JSONAll, "path", "exists")
	if r.Stream != nil {
		w.Key("stream").Bool(*r.Stream)
	}
}

func conditions(w *Writer, name string, list []Condition, nameKey, presentKey string) {
	if len(list) == 0 {
		return
	}
	w.Key(name).List(func() {
		for _, c := range list {
			c.write(w, nameKey, presentKey)
		}
	})
}

func (s Statuses) write(w *Writer, name string) {
	if len(s) == 0 {
		return
	}
	w.Key(name).List(func() {
		for _, r := range s {
			if r.from == r.to {
				w.Int(int64(r.from))
			} else {
				w.Text(strconv.Itoa(r.from) + "-" + strconv.Itoa(r.to))
			}
		}
	})
}

func (r *Rule) then(w *Writer) {
	w.int("restate_status", int64(r.To))
	w.text("restate_code", r.ToCode)
	w.text("note", r.Note)
	w.bool("keep", r.Keep)
	w.text("reason", string(r.Reason))
	w.text("scope", string(r.Scope))
	if r.Fallback || r.NoFallback {
		w.Key("fallback").Bool(r.Fallback)
	}
	if r.CooldownMS > 0 {
		w.Key("cooldown").milliseconds(r.CooldownMS)
	}
	w.bool("terminal", r.Terminal)
	w.text("set_status", string(r.SetStatus))
	w.bool("exact", r.Exact)
	w.bool("request_scoped", r.RequestScoped)
	w.text("message", r.Message)
	if r.Breaker != nil {
		w.Key("count_for_breaker").Bool(*r.Breaker)
	}
	if r.Confidence != nil {
		w.Key("confidence").Int(int64(*r.Confidence))
	}
	if r.RetryAfter != nil {
		w.Key("retry_after")
		r.RetryAfter.write(w)
	}
}
