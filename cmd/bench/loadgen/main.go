// Command loadgen drives an LLM gateway over HTTP/1.1 keep-alive and prints what it saw as one JSON object, a report.Row.
//
// Closed loop (-rate 0): -c connections, each sending its next request when the last one ended. Open loop (-rate N): a
// pacer releases requests on a fixed schedule into an unbounded queue; a request's clock starts when it is released, also
// when no connection is free, so a stalled server cannot hide its stalls (no coordinated omission).
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"
	"strings"
	"time"
)

type headerList []string

func (h *headerList) String() string     { return strings.Join(*h, ", ") }
func (h *headerList) Set(v string) error { *h = append(*h, v); return nil }

// options are the flags.
type options struct {
	name, caseName  string
	base, path, key string
	model           string
	body            int
	stream          bool
	conns           int
	rate            float64
	duration, warm  time.Duration
	timeout         time.Duration
	pid             int
	headers         headerList
	mock            string
	start           string
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "", "target name, copied to the result")
	flag.StringVar(&o.caseName, "case", "", "case name, copied to the result")
	flag.StringVar(&o.base, "url", "http://127.0.0.1:9100/v1", "base URL")
	flag.StringVar(&o.path, "path", "/chat/completions", "path below the base URL")
	flag.StringVar(&o.key, "key", "k-ok", "API key")
	flag.StringVar(&o.model, "model", "mock-1", "model name")
	flag.IntVar(&o.body, "body", 1024, "request body size in bytes")
	flag.BoolVar(&o.stream, "stream", false, "ask for a streaming reply")
	flag.IntVar(&o.conns, "c", 64, "connections (open loop: the most in flight)")
	flag.Float64Var(&o.rate, "rate", 0, "requests per second; 0 is closed loop")
	flag.DurationVar(&o.duration, "d", 10*time.Second, "measured time")
	flag.DurationVar(&o.warm, "warm", 2*time.Second, "time before it that is not counted")
	flag.DurationVar(&o.timeout, "timeout", 30*time.Second, "limit for one request")
	flag.IntVar(&o.pid, "pid", 0, "gateway process: adds CPU and memory of it and its children")
	flag.StringVar(&o.mock, "mock", "", "directive for the mock upstream, put into the prompt: 'interval=5ms;chunks=50'")
	flag.StringVar(&o.start, "start", "", "measure a cold start instead: run this command, send requests until one is answered, end it")
	flag.Var(&o.headers, "H", "extra header 'Name: value' (repeatable)")
	flag.Parse()
	measure := run
	if o.start != "" {
		measure = coldStart
	}
	res, err := measure(o)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(res); err != nil {
		log.Fatal(err)
	}
}
