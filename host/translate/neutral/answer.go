package neutral

// StopReason is why an answer ended (TR-3).
type StopReason uint8

// The reasons. StopNone: the answer has not ended.
const (
	StopNone StopReason = iota
	StopEnd
	StopSequence
	StopToolCall
	StopLimit
	StopContextFull
	StopFiltered
	StopPaused
	StopBadCall
)

// Answer is one whole answer in no dialect in particular.
type Answer struct {
	ID       string // the upstream's own, for the record (TR-8)
	Model    string // the upstream's own
	Parts    []Part
	Stop     StopReason
	StopText string // the sequence that stopped it, or an unknown reason as it came (TR-4)
	Usage    Usage
	Created  int64 // Unix seconds, 0: not said
}

// Usage are the tokens of an answer; negative: not stated. Input includes what was read from the cache and written to it,
// output includes reasoning (TR-5).
type Usage struct {
	Input      int64
	CachedRead int64
	CacheWrite int64
	Output     int64
	Reasoning  int64
}

// NoUsage is the usage of which nothing was stated.
func NoUsage() Usage { return Usage{-1, -1, -1, -1, -1} }

// Stated says whether the upstream gave any number.
func (u Usage) Stated() bool { return u.Input >= 0 || u.Output >= 0 }

// Add adds what another answer took; a field that neither states stays so (STM-46).
func (u *Usage) Add(other Usage) {
	for _, f := range [...]struct{ to, from *int64 }{
		{&u.Input, &other.Input},
		{&u.CachedRead, &other.CachedRead},
		{&u.CacheWrite, &other.CacheWrite},
		{&u.Output, &other.Output},
		{&u.Reasoning, &other.Reasoning},
	} {
		switch {
		case *f.from < 0:
		case *f.to < 0:
			*f.to = *f.from
		default:
			*f.to += *f.from
		}
	}
}

// Merge takes over what later states: the last value wins, per field, never the sum (TR-6).
func (u *Usage) Merge(later Usage) {
	for _, f := range [...]struct{ to, from *int64 }{
		{&u.Input, &later.Input},
		{&u.CachedRead, &later.CachedRead},
		{&u.CacheWrite, &later.CacheWrite},
		{&u.Output, &later.Output},
		{&u.Reasoning, &later.Reasoning},
	} {
		if *f.from >= 0 {
			*f.to = *f.from
		}
	}
}
