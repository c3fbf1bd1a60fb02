package hint

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxHeaders is how many headers are looked at; no provider sends as many.
const maxHeaders = 512

// lower copies header with lower-case names and one value each.
func lower(header map[string][]string) map[string]string {
	h := make(map[string]string, len(header))
	for name, values := range header {
		if len(h) == maxHeaders {
			break
		}
		if len(values) > 0 && len(values[0]) <= 512 {
			h[strings.ToLower(name)] = strings.TrimSpace(values[0])
		}
	}
	return h
}

// direct are the headers that say a wait outright, finer unit first.
func (p *pick) direct(h map[string]string) bool {
	for _, name := range []string{"retry-after-ms", "x-ms-retry-after-ms", "x-retry-after-ms", "retry-after", "x-retry-after"} {
		v, ok := h[name]
		if !ok {
			continue
		}
		unit := time.Second
		if strings.HasSuffix(name, "-ms") {
			unit = time.Millisecond
		}
		if d, _, ok := value(v, unit, p.now); ok && p.offer(d, "header:"+name) {
			return true
		}
	}
	return false
}

// buckets reads the reset headers of the buckets that are empty and of the windows that are full or rejected; with
// several of them the latest counts, for until then the request would be refused again.
func (p *pick) buckets(h map[string]string, prefix string) bool {
	type reset struct {
		wait     time.Duration
		relative bool
		name     string
	}
	latest := map[string]reset{} // by bucket: a relative reset beats an absolute one, no clock is compared
	for name, v := range h {
		bucket, unit, ok := resetOf(name)
		if !ok || v == "" || !exhausted(h, bucket, strings.Contains(name, "retry-after")) {
			continue
		}
		d, relative, ok := value(v, unit, p.now)
		if !ok {
			continue
		}
		if old, had := latest[bucket]; !had || relative && !old.relative {
			latest[bucket] = reset{d, relative, name}
		}
	}
	if d, ok := structured(h["ratelimit"]); ok {
		latest["ratelimit"] = reset{d, true, "ratelimit"}
	}
	all := make([]reset, 0, len(latest))
	for _, r := range latest {
		all = append(all, r)
	}
	if len(all) == 0 {
		return false
	}
	best := slices.MaxFunc(all, func(a, b reset) int {
		if a.wait != b.wait {
			return int(max(-1, min(1, a.wait-b.wait)))
		}
		return strings.Compare(b.name, a.name)
	})
	return p.offer(best.wait, prefix+best.name)
}

// resetOf says which bucket a header gives the reset of: its name with %s in place of the word that names the fact
// (x-ratelimit-%s-tokens, anthropic-ratelimit-unified-5h-%s, x-codex-primary-%s).
func resetOf(name string) (bucket string, unit time.Duration, ok bool) {
	if !strings.Contains(name, "ratelimit") && !strings.Contains(name, "rate-limit") && !strings.HasPrefix(name, "x-codex-") {
		return "", 0, false
	}
	for _, word := range []string{
		"reset-after-seconds", "reset-after-ms", "reset-after", "reset-at", "reset-in", "reset-seconds", "reset-ms",
		"reset-time", "reset", "retry-after-ms", "retry-after",
	} {
		before, after, found := strings.Cut(name, word)
		if !found {
			continue
		}
		unit = time.Second
		if strings.HasSuffix(word, "-ms") {
			unit = time.Millisecond
		}
		return before + "%s" + after, unit, true
	}
	return "", 0, false
}

// exhausted says whether the headers call a bucket empty, or a window full or rejected. A header that says to retry after
// some time says so by itself, unless another one contradicts it.
func exhausted(h map[string]string, bucket string, asked bool) bool {
	if strings.Contains(bucket, "overage") { // whether more may be bought, not whether a window is full
		return false
	}
	at := func(word string) (string, bool) {
		v, ok := h[strings.Replace(bucket, "%s", word, 1)]
		return v, ok && v != ""
	}
	if v, ok := at("status"); ok {
		switch strings.ToLower(v) {
		case "rejected", "exceeded", "exhausted", "blocked", "slot_busy", "limited":
			return true
		}
		return false
	}
	if v, ok := at("remaining"); ok {
		n, err := strconv.ParseFloat(v, 64)
		return err == nil && n <= 0
	}
	for word, full := range map[string]float64{"used-percent": 100, "utilization": 1} {
		if v, ok := at(word); ok {
			n, err := strconv.ParseFloat(v, 64)
			return err == nil && n >= full
		}
	}
	return asked
}

// structured reads the RateLimit header of the IETF drafts: "limit=9, remaining=0, reset=50" and "default;r=0;t=50".
func structured(v string) (time.Duration, bool) {
	left, reset := "", ""
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ',' || r == ';' }) {
		key, val, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch key {
		case "remaining", "r":
			left = val
		case "reset", "t":
			reset = val
		}
	}
	whole, frac, n := number(reset)
	if left != "0" || n == 0 || n != len(reset) {
		return 0, false
	}
	return times(whole, frac, time.Second), true
}
