package main

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/cmd/bench/proc"
	"github.com/weirgate/weir/cmd/bench/report"
)

// window is the time of a run: it starts, is counted from, and ends.
type window struct{ start, from, to time.Time }

// sample is one good answer.
type sample struct {
	total, ttfb float32 // microseconds
}

// worker is one connection and what it saw.
type worker struct {
	samples []sample
	gaps    []float32 // between events of a stream, microseconds
	delays  []float32 // upstream write to client read of one event, microseconds
	errs    map[string]int
	bytes   int64
	events  int64
}

// run loads the target for the time that o says and reports what came back.
func run(o options) (report.Row, error) {
	host, tmpl, nonceAt, err := requestTemplate(o)
	if err != nil {
		return report.Row{}, err
	}
	now := time.Now()
	w := window{now, now.Add(o.warm), now.Add(o.warm + o.duration)}
	var p *pacer
	var queue <-chan time.Time
	if o.rate > 0 {
		p = newPacer(o, w)
		queue = p.queue
		go p.run()
	}
	used := watch(o.pid, w)

	var wg sync.WaitGroup
	var serial atomic.Int64
	workers := make([]*worker, o.conns)
	for i := range workers {
		workers[i] = &worker{errs: map[string]int{}}
		wg.Go(func() {
			c := &client{host: host, timeout: o.timeout, stream: o.stream}
			defer c.close()
			workers[i].loop(c, bytes.Clone(tmpl), nonceAt, queue, w, &serial)
		})
	}
	wg.Wait()
	row := merge(workers).row(o)
	used(&row)
	if p != nil {
		row.PacerLag, row.Planned = quantiles(p.lag), p.planned
		return row, p.err
	}
	return row, nil
}

// loop sends requests until the window ends: when queue is nil one after the other, else as they are released.
func (k *worker) loop(c *client, req []byte, nonceAt int, queue <-chan time.Time, w window, serial *atomic.Int64) {
	for {
		begin := time.Now()
		if queue != nil {
			released, more := <-queue
			if !more {
				return
			}
			if begin = released; time.Since(w.to) > c.timeout {
				if begin.After(w.from) {
					k.errs["not_sent"]++
				}
				continue
			}
		} else if !begin.Before(w.to) {
			return
		}
		putNonce(req[nonceAt:nonceAt+len(nonce)], serial.Add(1))
		r := c.do(req)
		end := time.Now()
		counted := end.After(w.from) && !end.After(w.to)
		if queue != nil {
			counted = begin.After(w.from)
		}
		if counted {
			k.count(c, r, begin, end)
		}
	}
}

func (k *worker) count(c *client, r result, begin, end time.Time) {
	if r.err != "" {
		k.errs[r.err]++
		return
	}
	k.samples = append(k.samples, sample{us(end.Sub(begin)), us(r.first.Sub(begin))})
	k.bytes += int64(r.bytes)
	if c.stream {
		k.events += int64(r.events)
		k.gaps = append(k.gaps, c.gaps...)
		k.delays = append(k.delays, c.delays...)
	}
}

// watch reads the CPU time of a process at both ends of the window; the function that it returns waits for the second
// reading and fills it in.
func watch(pid int, w window) func(*report.Row) {
	if pid <= 0 {
		return func(*report.Row) {}
	}
	_, idle := proc.Usage(pid)
	var before, after float64
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(time.Until(w.from))
		before, _ = proc.Usage(pid)
		time.Sleep(time.Until(w.to))
		after, _ = proc.Usage(pid)
	}()
	return func(r *report.Row) {
		<-done
		r.CPU, r.RSSBefore = after-before, idle
		_, r.RSSAfter = proc.Usage(pid)
	}
}

func merge(workers []*worker) *worker {
	all := &worker{errs: map[string]int{}}
	for _, w := range workers {
		all.samples = append(all.samples, w.samples...)
		all.gaps = append(all.gaps, w.gaps...)
		all.delays = append(all.delays, w.delays...)
		all.bytes += w.bytes
		all.events += w.events
		for k, v := range w.errs {
			all.errs[k] += v
		}
	}
	return all
}

func (k *worker) row(o options) report.Row {
	n := len(k.samples)
	r := report.Row{
		Target: o.name, Case: o.caseName, Stream: o.stream, Body: o.body, Conns: o.conns, Rate: o.rate,
		Seconds: o.duration.Seconds(), OK: n, ErrorKinds: k.errs, RPS: float64(n) / o.duration.Seconds(),
	}
	for _, v := range k.errs {
		r.Errors += v
	}
	total, ttfb := make([]float32, n), make([]float32, n)
	for i, s := range k.samples {
		total[i], ttfb[i] = s.total, s.ttfb
	}
	r.Latency = quantiles(total)
	if o.stream {
		r.TTFB, r.Gap, r.Delay, r.Events = quantiles(ttfb), quantiles(k.gaps), quantiles(k.delays), k.events
	}
	if n > 0 {
		r.Bytes = k.bytes / int64(n)
	}
	return r
}
