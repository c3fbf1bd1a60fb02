package main

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

var errQueueFull = errors.New("queue full: rate and duration do not fit")

// pacer releases requests on a fixed schedule, whatever the server does.
type pacer struct {
	queue   chan time.Time
	rate    float64
	start   time.Time
	from    time.Time // releases before it are not counted
	to      time.Time
	lag     []float32 // how late the pacer itself was
	planned int
	err     error
}

// newPacer makes a queue that holds every release of the run, so that the pacer never waits.
func newPacer(o options, w window) *pacer {
	n := int(o.rate*(o.warm+o.duration).Seconds()) + 1
	return &pacer{queue: make(chan time.Time, n), rate: o.rate, start: w.start, from: w.from, to: w.to}
}

// run sleeps in the kernel on a thread of its own, since the runtime's timers are only good to about a millisecond on an
// idle program.
func (p *pacer) run() {
	runtime.LockOSThread()
	defer close(p.queue)
	for i := 0; ; i++ {
		at := p.start.Add(time.Duration(float64(i) / p.rate * 1e9))
		if !at.Before(p.to) {
			return
		}
		if d := time.Until(at); d > 0 {
			ts := syscall.NsecToTimespec(int64(d))
			_ = syscall.Nanosleep(&ts, nil) // a signal wakes early: the next release is then early by as much
		}
		now := time.Now()
		if now.After(p.from) {
			p.lag = append(p.lag, us(now.Sub(at)))
			p.planned++
		}
		select {
		case p.queue <- now:
		default:
			p.err = errQueueFull
			return
		}
	}
}
