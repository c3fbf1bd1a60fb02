package ledger

import (
	"github.com/weirgate/weir/host/dispatch"
)

// Row is one request (OBJ-17). What nobody knows is null, never 0.
type Row struct {
	RequestID      string    `json:"requestId"`
	At             string    `json:"at"` // when it began
	DurationMS     int64     `json:"durationMs"`
	Endpoint       string    `json:"endpoint"`
	ClientDialect  string    `json:"clientDialect"`
	APIKeyID       *string   `json:"apiKeyId"` // null: inference is open
	Client         *string   `json:"client"`   // the beginning of its User-Agent
	Route          *Route    `json:"route"`    // null: the model was not known
	RequestedModel string    `json:"requestedModel"`
	Provider       *string   `json:"provider"` // of the answer, else of the last attempt
	ConnectionID   *string   `json:"connectionId"`
	Model          *string   `json:"model"`
	Stream         bool      `json:"stream"`
	Status         int       `json:"status"`  // as the client saw it; 499: it had left (OV-4)
	Outcome        string    `json:"outcome"` // ok, partial, client_error, failed, cancelled
	Reason         *string   `json:"reason"`  // null: it went well, or the client left
	WaitedMS       int64     `json:"waitedMs"`
	TTFTMS         *int64    `json:"ttftMs"`
	Tokens         Tokens    `json:"tokens"`
	CostUSD        *float64  `json:"costUsd"` // null: a price or a number of tokens is not known
	Attempts       []Attempt `json:"attempts"`
	Notes          []string  `json:"notes"`

	ClientRetry *int64          `json:"clientRetry,omitempty"` // the client's own number of this try; it is not to be trusted (INF-48)
	Prices      string          `json:"prices,omitempty"`      // the table that priced it (GOV-31)
	Bodies      *Bodies         `json:"bodies,omitempty"`      // while requestLog.bodies is on
	Gates       []dispatch.Gate `json:"gates,omitempty"`       // while requestLog.trace is on; never stored
}

// Route is what a request was resolved to.
type Route struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Tokens are those that the upstreams of a request stated. Input includes what was read from the cache and written to it, output includes
// reasoning (TR-5).
type Tokens struct {
	Input      *int64 `json:"input"`
	CachedRead *int64 `json:"cachedRead"`
	CacheWrite *int64 `json:"cacheWrite"`
	Output     *int64 `json:"output"`
	Reasoning  *int64 `json:"reasoning"`
	Estimated  bool   `json:"estimated"` // the client was told numbers that nobody stated (INF-22)
}

// Attempt is one dispatch of a target on a connection.
type Attempt struct {
	Provider       string  `json:"provider"`
	ConnectionID   string  `json:"connectionId"`
	Model          string  `json:"model"`
	At             string  `json:"at"`
	FirstByteMS    *int64  `json:"firstByteMs"`
	DurationMS     int64   `json:"durationMs"`
	Status         *int    `json:"status"`
	OriginalStatus *int    `json:"originalStatus"` // as it came, before any restatement; null: there was no HTTP answer
	Reason         *string `json:"reason"`
	Scope          *string `json:"scope"`
	RestatedBy     *string `json:"restatedBy"`
	DecidedBy      *string `json:"decidedBy"`
	Billed         bool    `json:"billed"`
}

// Bodies are the texts of a request, without secrets.
type Bodies struct {
	Request string `json:"request"`
	Answer  string `json:"answer"` // as the client got it; of a failure its message
	Cut     bool   `json:"cut"`    // one of them was longer
}
