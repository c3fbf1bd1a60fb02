package manage

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/ledger"
	"github.com/weirgate/weir/host/observe"
	"github.com/weirgate/weir/host/quota"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

type requestList struct {
	Requests []ledger.Row `json:"requests"`
	Total    int          `json:"total"`
	Dropped  int64        `json:"dropped"` // since the start: the queue was full, or the store does not write
}

// listRequests answers rows of the ledger, newest first (OBJ-17).
func listRequests(s *Server, c *call) (any, error) {
	f, err := c.requestFilter()
	if err != nil {
		return nil, err
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	rows, total, err := s.ports.Requests.List(c.ctx(), f, p.limit, p.offset)
	if err != nil {
		return nil, unreadableLedger(err)
	}
	return requestList{rows, total, s.ports.Requests.Dropped()}, nil
}

var outcomes = []observe.Outcome{observe.OK, observe.Partial, observe.ClientError, observe.Failed, observe.Cancelled}

func (c *call) requestFilter() (ledger.Filter, error) {
	q := c.r.URL.Query()
	f := ledger.Filter{
		Provider: q.Get("provider"), ConnectionID: q.Get("connectionId"), Model: q.Get("model"), APIKeyID: q.Get("apiKeyId"),
		Outcome: q.Get("outcome"), Reason: q.Get("reason"),
	}
	if f.Outcome != "" && !slices.Contains(outcomes, observe.Outcome(f.Outcome)) {
		return f, invalid(Detail{"outcome", "must be ok, partial, client_error, failed or cancelled"})
	}
	if reason, known := wire.ParseReason(f.Reason); known && f.Reason != "" {
		f.Reason = string(reason)
	}
	var err error
	if f.Since, err = c.moment("since"); err == nil {
		f.Until, err = c.moment("until")
	}
	return f, err
}

// getRequest answers one row, with its gates and texts while they are kept (OBJ-18).
func getRequest(s *Server, c *call) (any, error) {
	row, found, err := s.ports.Requests.Get(c.ctx(), c.id)
	switch {
	case err != nil:
		return nil, unreadableLedger(err)
	case !found:
		return nil, problem(http.StatusNotFound, "There is no request %s in the ledger; it is too old, or was made before the log was switched on.", c.id)
	}
	return row, nil
}

// unreadableLedger says that the store that holds the ledger is closed for want of room (DATA-6).
func unreadableLedger(err error) error {
	if errors.Is(err, store.ErrDegraded) {
		return problem(http.StatusInsufficientStorage,
			"The ledger cannot be read while the store is degraded (disk full or failing); free some space and repeat.")
	}
	return err
}

// quotaAnswer is what is known of a connection's limits; at and source are null when nothing is (OBJ-20).
type quotaAnswer struct {
	ConnectionID string         `json:"connectionId"`
	At           *string        `json:"at"`
	Source       *string        `json:"source"`
	Windows      []quota.Window `json:"windows"`
}

func getQuota(s *Server, c *call) (any, error) {
	if c.catalog.Connection(c.id) == nil {
		return nil, notFound("connection", c.id)
	}
	q, known := s.ports.Quota(c.id)
	if !known {
		return quotaAnswer{ConnectionID: c.id, Windows: []quota.Window{}}, nil
	}
	return quotaAnswer{q.ConnectionID, &q.At, &q.Source, q.Windows}, nil
}

// Price is one row of the table of prices, in USD per million tokens; null is not known (OBJ-21).
type Price struct {
	Provider   string   `json:"provider"` // glob
	Model      string   `json:"model"`    // glob
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CachedRead *float64 `json:"cachedRead"`
	CacheWrite *float64 `json:"cacheWrite"`
	Reasoning  *float64 `json:"reasoning"` // null: as output
	Since      *string  `json:"since"`
	Tiers      []Tier   `json:"tiers"` // by the tokens of the prompt
	Source     string   `json:"source"`
}

// Tier is a price above a number of tokens (GOV-30).
type Tier struct {
	Above      int64    `json:"above"`
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CachedRead *float64 `json:"cachedRead"`
	CacheWrite *float64 `json:"cacheWrite"`
	Reasoning  *float64 `json:"reasoning"`
}

type priceList struct {
	Prices []Price `json:"prices"`
	Total  int     `json:"total"`
}

func listPrices(s *Server, c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	all := []Price{}
	for _, source := range s.ports.Prices().Sources() {
		for i := range source.Prices {
			all = append(all, shownPrice(&source.Prices[i], source.Plugin+"@"+source.Version))
		}
	}
	return priceList{cut(all, p), len(all)}, nil
}

func shownPrice(p *wire.Price, source string) Price {
	out := Price{
		Provider: strings.ToLower(p.Provider), Model: p.Model, Input: p.Input, Output: p.Output, CachedRead: p.CachedRead,
		CacheWrite: p.CacheWrite, Reasoning: p.Reasoning, Since: orNull(p.Since), Tiers: []Tier{}, Source: source,
	}
	for _, t := range p.Tiers {
		out.Tiers = append(out.Tiers, Tier(t))
	}
	return out
}
