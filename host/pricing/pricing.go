// Package pricing knows what the tokens of an answer cost: by the tables that packs carry (OBJ-21). It is pure; amounts are whole
// nano-USD, so that sums agree whatever their order (GOV-30).
package pricing

import (
	"math"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// Source is the prices of one pack.
type Source struct {
	Plugin  string
	Version string
	Prices  []wire.Price
}

// Table is the prices in force, in the order in which they are asked. Immutable; safe for concurrent use.
type Table struct {
	sources []Source
}

// New makes a table. The first row that matches counts, so what comes first beats what comes later.
func New(sources ...Source) *Table {
	return &Table{slices.DeleteFunc(slices.Clone(sources), func(s Source) bool { return len(s.Prices) == 0 })}
}

// Sources are the packs of the table, in their order.
func (t *Table) Sources() []Source { return t.sources }

// Rate is the price of a model and where it stands. Nil: there is none.
type Rate struct {
	Price  wire.Price
	Origin string // pricing@1.4.0 (GOV-31)
}

// Find returns the price of a model of a provider. Letter case does not count.
func (t *Table) Find(provider, model string) *Rate {
	provider, model = strings.ToLower(provider), strings.ToLower(model)
	for i := range t.sources {
		s := &t.sources[i]
		for j := range s.Prices {
			if p := &s.Prices[j]; covers(p.Provider, provider) && covers(p.Model, model) {
				return &Rate{Price: *p, Origin: s.Plugin + "@" + s.Version}
			}
		}
	}
	return nil
}

// covers says whether a pattern, in which * stands for any text, covers s, which is in lower case.
func covers(pattern, s string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	head, last := parts[0], len(parts)-1
	if last == 0 {
		return head == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for _, part := range parts[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[last])
}

// Cost is what the tokens cost, in nano-USD. False: a number is not known that would have to be, of the tokens or of the price. Input
// includes what the cache gave and took, output includes reasoning (TR-5).
func (r *Rate) Cost(u neutral.Usage) (nanoUSD int64, known bool) {
	if r == nil || u.Input < 0 || u.Output < 0 {
		return 0, false
	}
	p := r.at(u.Input)
	read, write, thought := max(u.CachedRead, 0), max(u.CacheWrite, 0), max(u.Reasoning, 0)
	fresh, said := u.Input-read-write, u.Output-thought
	if fresh < 0 || said < 0 { // numbers that contradict each other
		return 0, false
	}
	if p.Reasoning == nil {
		p.Reasoning = p.Output
	}
	sum := 0.0
	for _, part := range [...]struct {
		tokens int64
		usd    *float64
	}{{fresh, p.Input}, {read, p.CachedRead}, {write, p.CacheWrite}, {said, p.Output}, {thought, p.Reasoning}} {
		if part.tokens == 0 {
			continue
		}
		if part.usd == nil {
			return 0, false
		}
		sum += float64(part.tokens) * *part.usd * 1000 // USD per million is 1000 nano-USD per token
	}
	if sum > math.MaxInt64/2 {
		return 0, false
	}
	return int64(math.Round(sum)), true
}

// at is the price for a prompt of so many tokens.
func (r *Rate) at(input int64) wire.Tier {
	p := &r.Price
	now := wire.Tier{Input: p.Input, Output: p.Output, CachedRead: p.CachedRead, CacheWrite: p.CacheWrite, Reasoning: p.Reasoning}
	for _, t := range p.Tiers {
		if input > t.Above {
			now = t
		}
	}
	return now
}
