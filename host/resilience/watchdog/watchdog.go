// Package watchdog owns the judgement of a running stream: whether its upstream still sends, whether the model still works, and
// whether text comes fast enough (STM-20 to STM-35). It has no clock and no socket: what happened goes in with its time, and Check
// says what it comes to.
package watchdog

import "time"

// Limits are what a stream is held to; 0 is no limit.
type Limits struct {
	Idle       time.Duration // without any byte of the upstream (STM-28)
	Stall      time.Duration // without a sign of the model, before the first output (STM-20)
	StallAfter time.Duration // the same after it (CMB-26)
	Slow       Slow
}

// Slow are the limits of the throughput watchdog (STM-30).
type Slow struct {
	Enabled  bool
	Warmup   time.Duration // no judgement before it and one window are over
	Window   time.Duration
	MinRate  int // useful bytes per second
	MinBytes int // a window with some, but fewer bytes than this, is not judged
}

// Sign is what an event of a stream says of the model.
type Sign struct {
	Activity bool // the model works (STM-22)
	Output   bool // the user sees something of it (STM-21)
	Busy     bool // a tool call or reasoning is running: no judgement of the rate (STM-32)
	Text     int  // useful bytes (STM-31)
}

// Fault is what is wrong with a stream.
type Fault uint8

// The faults.
const (
	None    Fault = iota
	Idle          // no byte came
	Stalled       // bytes came, but no sign of the model
	TooSlow       // hardly any text came
)

// Watchdog watches one stream. Not for concurrent use.
type Watchdog struct {
	limits  Limits
	began   time.Time
	heard   time.Time // the last byte
	active  time.Time // the last sign of the model
	output  bool
	busy    bool
	measure time.Time // since when the rate counts
	counts  []count   // useful bytes of the last window, oldest first
	sum     int
}

// count are useful bytes that came at about one time.
type count struct {
	at    time.Time
	bytes int
}

// New watches a stream that begins now.
func New(l Limits, now time.Time) *Watchdog {
	return &Watchdog{limits: l, began: now, heard: now, active: now, measure: now}
}

// Heard notes that bytes came, whatever they say.
func (w *Watchdog) Heard(now time.Time) { w.heard = now }

// Saw notes what an event said.
func (w *Watchdog) Saw(now time.Time, s Sign) {
	if s.Activity || s.Output {
		w.active = now
	}
	w.output = w.output || s.Output
	switch {
	case s.Text > 0:
		if w.busy { // the next useful text resumes the judgement, with a window of its own
			w.busy, w.measure, w.counts, w.sum = false, now, w.counts[:0], 0
		}
		w.count(now, s.Text)
	case s.Busy:
		w.busy = true
	}
}

// Linger is what is left when the answer is complete: only the upstream's end is waited for, at most for d.
func (w *Watchdog) Linger(d time.Duration) { w.limits = Limits{Idle: d} }

// Output says whether the user has seen something of the answer.
func (w *Watchdog) Output() bool { return w.output }

// coarse is how many counts a window has at most.
const coarse = 64

func (w *Watchdog) count(now time.Time, n int) {
	if !w.limits.Slow.Enabled {
		return
	}
	w.sum += n
	if k := len(w.counts); k > 0 && now.Sub(w.counts[k-1].at) < w.limits.Slow.Window/coarse {
		w.counts[k-1].bytes += n
		return
	}
	w.forget(now)
	w.counts = append(w.counts, count{now, n})
}

// forget drops what is older than the window.
func (w *Watchdog) forget(now time.Time) {
	old := 0
	for old < len(w.counts) && now.Sub(w.counts[old].at) >= w.limits.Slow.Window {
		w.sum -= w.counts[old].bytes
		old++
	}
	w.counts = append(w.counts[:0], w.counts[old:]...)
}

// Check judges the stream, and says when to look again at the latest; zero: there is nothing to wait for.
func (w *Watchdog) Check(now time.Time) (f Fault, next time.Time) {
	until := func(from time.Time, d time.Duration, what Fault) {
		if d <= 0 {
			return
		}
		at := from.Add(d)
		if !now.Before(at) && f == None {
			f = what
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	until(w.heard, w.limits.Idle, Idle)
	if w.output {
		until(w.active, w.limits.StallAfter, Stalled)
	} else {
		until(w.active, w.limits.Stall, Stalled)
	}
	if !w.limits.Slow.Enabled || w.busy || f != None {
		return f, next
	}
	look, slow := w.rate(now)
	if slow {
		return TooSlow, now
	}
	if next.IsZero() || look.Before(next) {
		next = look
	}
	return None, next
}

// rate judges the last window, and says when to do so again (STM-31, STM-33, STM-35).
func (w *Watchdog) rate(now time.Time) (look time.Time, slow bool) {
	s := &w.limits.Slow
	from := w.began.Add(s.Warmup + s.Window)
	if own := w.measure.Add(s.Window); own.After(from) {
		from = own
	}
	if now.Before(from) {
		return from, false
	}
	w.forget(now)
	if w.sum > 0 && w.sum < s.MinBytes {
		return now.Add(s.Window / 8), false
	}
	return now.Add(s.Window / 8), float64(w.sum) < float64(s.MinRate)*s.Window.Seconds()
}
