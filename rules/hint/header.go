package hint

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxHeaders = 128 // that are looked at; no provider sends as many about waits
	maxHeader  = 512 // bytes of a value
)

// header is one header, its name in lower case.
type header struct{ name, value string }

// headers are those that may say a wait, by name. No name comes twice.
type headers []header

// sorted puts headers in order; of two with one name the later counts.
func (h headers) sorted() headers {
	slices.SortStableFunc(h, func(a, b header) int { return strings.Compare(a.name, b.name) })
	kept := h[:0]
	for i, x := range h {
		if i+1 == len(h) || h[i+1].name != x.name {
			kept = append(kept, x)
		}
	}
	return kept
}

func (h headers) get(name string) (string, bool) {
	i, ok := slices.BinarySearchFunc(h, name, func(x header, name string) int { return strings.Compare(x.name, name) })
	if !ok {
		return "", false
	}
	return h[i].value, true
}

// telling says whether a header of that name may have to do with a wait.
func telling(name string) bool {
	return strings.Contains(name, "retry-after") || strings.Contains(name, "ratelimit") || strings.Contains(name, "rate-limit") ||
		strings.HasPrefix(name, "x-codex-")
}

// tellingHeaders takes the headers that may have to do with a wait, one value each.
func tellingHeaders(from map[string][]string) headers {
	var h headers
	for name, values := range from {
		if len(values) == 0 || len(values[0]) > maxHeader {
			continue
		}
		if name = strings.ToLower(name); telling(name) {
			h = append(h, header{name, strings.TrimSpace(values[0])})
		}
	}
	slices.SortFunc(h, func(a, b header) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	h = h.sorted()
	return h[:min(len(h), maxHeaders)]
}

// direct are the headers that say a wait outright, finer unit first.
func (p *pick) direct(h headers) bool {
	for _, name := range []string{"retry-after-ms", "x-ms-retry-after-ms", "x-retry-after-ms", "retry-after", "x-retry-after"} {
		v, ok := h.get(name)
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
func (p *pick) buckets(h headers, prefix string) bool {
	type reset struct {
		wait     time.Duration
		relative bool
		name     string
	}
	latest := map[string]reset{} // by bucket: a relative reset beats an absolute one, no clock is compared
	for _, x := range h {
		name, v := x.name, x.value
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
	draft, _ := h.get("ratelimit")
	if d, ok := structured(draft); ok {
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
func exhausted(h headers, bucket string, asked bool) bool {
	if strings.Contains(bucket, "overage") { // whether more may be bought, not whether a window is full
		return false
	}
	at := func(word string) (string, bool) {
		v, ok := h.get(strings.Replace(bucket, "%s", word, 1))
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
	for _, full := range []struct {
		word string
		at   float64
	}{{"used-percent", 100}, {"utilization", 1}} {
		if v, ok := at(full.word); ok {
			n, err := strconv.ParseFloat(v, 64)
			return err == nil && n >= full.at
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
