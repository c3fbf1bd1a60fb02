package dispatch

import (
	"errors"
	"time"

	"github.com/weirgate/weir/host/resilience/watchdog"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// What becomes of a stream that is cut (STM-64).
const (
	recoverHold     = "hold"
	recoverContinue = "continue"
)

// recovery is what the route wants done about streams that are cut, else what the settings say (STM-64). early says whether the opening
// of a stream is held for a moment, so that a cut in it can be repaired unseen (STM-40).
func (a *attempt) recovery() (mode string, early bool) {
	s, own := a.r.c.Catalog.Settings, a.r.c.Route.Config.StreamRecovery
	switch {
	case own == "off":
		return own, false
	case own != "":
		mode = own
	case s.RouteDefaults.StreamRecovery == recoverHold, s.RouteDefaults.StreamRecovery == recoverContinue:
		mode = s.RouteDefaults.StreamRecovery
	case s.StreamRecovery.Continue:
		mode = recoverContinue
	}
	return mode, s.StreamRecovery.Enabled
}

// How long and how much of a stream's opening is held, and how often it is asked for again (STM-40).
const (
	openingTime  = 750 * time.Millisecond
	openingBytes = 64 << 10
	openingTries = 4
)

// holding is what of an answer is kept back behind its first word.
type holding struct {
	begun bool // the first word has come
	on    bool // it is kept back all the same
	early bool // only the opening
	most  int  // bytes
}

// newPump prepares the stream of an answer, with its watchdog.
func (a *attempt) newPump() *pump {
	s := a.r.c.Catalog.Settings
	p := &pump{a: a, limit: s.Streams.MaxEventBytes}
	p.frames = upstream.NewFrames(p, p.limit)
	p.findWay()
	if a.resumed != nil || a.r.t.Committed {
		a.clock.limit(phaseEvent, 0)
	} else {
		limit := a.eventLimit()
		if limit > 0 {
			limit = max(limit-a.firstAt.Sub(a.began), 1)
		}
		a.clock.limit(phaseEvent, limit)
	}
	slow := s.StreamRecovery.Throughput
	a.clock.watch(watchdog.New(watchdog.Limits{
		Idle: smallest(s.StreamIdleTimeout, a.prep.Idle), Stall: a.stallBudget(false), StallAfter: a.stallBudget(true),
		Slow: watchdog.Slow{Enabled: slow.Enabled, Warmup: slow.Warmup, Window: slow.Window, MinRate: slow.MinRate, MinBytes: slow.MinBytes},
	}, time.Now()))
	mode, early := a.recovery()
	switch {
	case !a.r.c.Stream || a.resumed != nil:
	case mode == recoverHold:
		p.hold.most, p.hold.on = s.Streams.HoldMaxBytes, true
	case early:
		p.hold.most, p.hold.on, p.hold.early = openingBytes, true, true
		p.ahead = readAheadOf(p.frames, a.cancel)
	}
	if mode == recoverContinue && a.r.c.Stream {
		p.story = a.newStory()
	}
	_, p.known = translate.Codec(a.spoken())
	p.signs, p.always = true, a.stallBudget(true) > 0 || slow.Enabled || p.story != nil
	return p
}

// Read gives the frames what the upstream sends. Every byte counts for the idle timer (STM-28).
func (p *pump) Read(b []byte) (int, error) {
	n, err := p.a.resp.Body.Read(b)
	if n > 0 {
		p.now = time.Now()
		p.a.clock.heard(p.now)
	}
	return n, err
}

// read looks for signs of the model. Behind the first output only where somebody wants to know.
func (p *pump) read(run []byte) {
	if p.output && !p.always || !p.signs {
		return
	}
	d := p.a.spoken()
	upstream.Events(run, func(e upstream.Event) bool {
		s := signOf(d, e.Name, e.Data)
		p.shown = p.shown || s.Busy || s.Output
		p.output = p.output || s.Output
		p.a.clock.saw(p.now, s.Sign)
		if p.story != nil {
			p.story.take(d, e.Name, e.Data, &s)
		}
		return p.always || !p.output
	})
}

// beginHold starts the moment for which an opening is held.
func (p *pump) beginHold() {
	if p.hold.on && p.hold.early {
		p.ahead.release.Reset(openingTime)
	}
}

// release lets go what was held behind the first word; false: nothing was.
func (p *pump) release() bool {
	if !p.hold.begun || !p.hold.on {
		return false
	}
	p.hold.on = false
	p.open()
	return true
}

// stop ends what reads ahead.
func (p *pump) stop() {
	if p.ahead != nil {
		p.ahead.close()
	}
}

// errRelease says that the time for which an opening is held is over.
var errRelease = errors.New("release")

// next is the next run of whole events.
func (p *pump) next() ([]byte, error) {
	if p.hold.on && p.hold.begun && len(p.held) > p.hold.most {
		return nil, errRelease
	}
	if p.ahead == nil {
		return p.frames.Next()
	}
	return p.ahead.next()
}

// readAhead reads a stream on a goroutine of its own, so that its reader can be woken by the time.
type readAhead struct {
	runs    chan aheadRun
	more    chan struct{}
	quit    chan struct{}
	done    chan struct{}
	release *time.Timer
	cancel  func(error)
	asked   bool // for the next run
}

type aheadRun struct {
	run []byte
	err error
}

func readAheadOf(f *upstream.Frames, cancel func(error)) *readAhead {
	r := &readAhead{runs: make(chan aheadRun), more: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	r.release = time.NewTimer(time.Hour)
	r.release.Stop()
	go r.loop(f)
	return r
}

// loop reads one run whenever it is asked to: a run is valid until the next one is read.
func (r *readAhead) loop(f *upstream.Frames) {
	defer close(r.done)
	for {
		select {
		case <-r.more:
		case <-r.quit:
			return
		}
		run, err := f.Next()
		select {
		case r.runs <- aheadRun{run, err}:
		case <-r.quit:
			return
		}
	}
}

func (r *readAhead) next() ([]byte, error) {
	if !r.asked {
		r.asked = true
		r.more <- struct{}{}
	}
	select {
	case x := <-r.runs:
		r.asked = false
		return x.run, x.err
	case <-r.release.C:
		return nil, errRelease
	}
}

func (r *readAhead) close() {
	r.release.Stop()
	close(r.quit)
	r.cancel(nil)
	<-r.done
}

// mayRepeat says whether an attempt whose opening was cut is made once more on the same account, and makes it so (STM-40, STM-41).
func (a *attempt) mayRepeat(err error) bool {
	_, early := a.recovery()
	if !early || !a.r.c.Stream || a.r.t.Committed || a.resumed != nil || a.tries >= openingTries || errors.Is(err, upstream.ErrFrameTooLarge) {
		return false
	}
	if _, known := translate.Codec(a.r.c.Dialect); !known {
		return false
	}
	if upstream.TransportCode(err) == wire.TransportTLS {
		return false
	}
	a.tries++
	a.repeat = true
	a.r.t.note("stream: cut in its opening, asked for again on the same account")
	return true
}

// stallBudget is how long a stream may show no sign of the model before its first output, or after it; 0: no limit (STM-20, CMB-26).
func (a *attempt) stallBudget(after bool) time.Duration {
	s := a.r.c.Catalog.Settings
	own := choose(a.r.c.Route.Config.StallTimeout, s.RouteDefaults.StallTimeout)
	switch {
	case own > 0:
		return own
	case after:
		return 0
	case s.ContentStall < 0:
		return a.readiness()
	}
	return s.ContentStall
}

// readiness is the time to the first useful event: more for large prompts, and all there is for a request that asks for reasoning
// (STM-12).
func (a *attempt) readiness() time.Duration {
	s := a.r.c.Catalog.Settings
	ceiling := max(s.ReadinessMax, s.ReadinessTimeout)
	if asksToReason(a.r.c) {
		return ceiling
	}
	tokens := a.r.c.Body.Len() / 4
	return min(s.ReadinessTimeout+time.Duration(tokens/2000)*time.Second, ceiling)
}

// asksToReason says whether a request asks for reasoning, in the words of its dialect.
func asksToReason(c *Call) bool {
	said := func(path string) string {
		raw, _ := c.Scan.Get(path)
		return string(raw)
	}
	off := func(word string) bool {
		switch word {
		case "", "null", `"none"`, `"minimal"`, "0", "false", `"disabled"`:
			return true
		}
		return false
	}
	switch c.Dialect {
	case wire.OpenAIChat:
		return !off(said("reasoning_effort")) || !off(said("reasoning.effort")) || said("reasoning.enabled") == "true"
	case wire.OpenAIResponses:
		return !off(said("reasoning.effort"))
	case wire.AnthropicMessages:
		return !off(said("thinking.type"))
	case wire.GeminiGenerate:
		return !off(said("generationConfig.thinkingConfig")) && !off(firstOf(said("generationConfig.thinkingConfig.thinkingBudget"), "-1"))
	default:
		return false
	}
}
