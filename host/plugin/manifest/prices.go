package manifest

import (
	"math"
	"strings"
	"time"
)

// maxRate is the most that a million tokens may cost, in USD. What is above is a price per token that was not multiplied, or a slip.
const maxRate = 100_000

// prices checks the table of prices (OBJ-21).
func (c *checker) prices(m *Manifest) {
	for i := range m.Prices {
		p, at := &m.Prices[i], index("prices", i)
		c.priceGlob(at+".provider", p.Provider)
		c.priceGlob(at+".model", p.Model)
		c.rate(at+".input", p.Input, true)
		c.rate(at+".output", p.Output, true)
		c.rate(at+".cached_read", p.CachedRead, false)
		c.rate(at+".cache_write", p.CacheWrite, false)
		c.rate(at+".reasoning", p.Reasoning, false)
		if p.Since != "" {
			if _, err := time.Parse(time.DateOnly, p.Since); err != nil {
				c.bad(at+".since", "%q is not a day such as 2026-07-01", p.Since)
			}
		}
		before := int64(0)
		for j, t := range p.Tiers {
			tier := index(at+".tiers", j)
			if t.Above <= before {
				c.bad(tier+".above", "%d must be above %d: tiers rise from the first to the last", t.Above, before)
			}
			before = t.Above
			c.rate(tier+".input", t.Input, true)
			c.rate(tier+".output", t.Output, true)
			c.rate(tier+".cached_read", t.CachedRead, false)
			c.rate(tier+".cache_write", t.CacheWrite, false)
			c.rate(tier+".reasoning", t.Reasoning, false)
		}
	}
}

func (c *checker) priceGlob(field, g string) {
	switch {
	case g == "":
		c.bad(field, "is missing; write * to match everything")
	case len(g) > maxGlob:
		c.bad(field, "has %d bytes, at most %d are allowed", len(g), maxGlob)
	case strings.ContainsAny(g, "?[]{}"):
		c.bad(field, "%q: the only wildcard is *", g)
	}
}

func (c *checker) rate(field string, usd *float64, must bool) {
	switch {
	case usd == nil && must:
		c.bad(field, "is missing; leave the whole row out when the price is not known")
	case usd == nil:
	case math.IsNaN(*usd) || *usd < 0 || *usd > maxRate:
		c.bad(field, "%v is outside 0 to %d USD per million tokens", *usd, maxRate)
	}
}
