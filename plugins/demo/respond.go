package main

import (
	"strconv"

	"github.com/weirgate/weir/sdk"
)

const (
	window      = 10_000 // milliseconds, of limited
	perWindow   = 2
	slowFirst   = 2_000 // milliseconds to the first word of slow
	slowBetween = 200
)

// respond is the provider: it plays what each model promises (OBJ-26).
func respond(r *sdk.Request) *sdk.Answer {
	switch r.UpstreamModel {
	case "echo":
		return echo(r, 0, 0)
	case "slow":
		return echo(r, slowFirst, slowBetween)
	case "flaky":
		return flaky(r)
	case "limited":
		return limited(r)
	case "misstating":
		if r.ConnectionID == "demo-a" {
			return failure(403, "用户额度不足", "new_api_error", "", nil)
		}
		return echo(r, 0, 0)
	}
	return failure(404, "the model "+r.UpstreamModel+" does not exist", "invalid_request_error", "model_not_found", nil)
}

// flaky fails every odd call, counted over both connections.
func flaky(r *sdk.Request) *sdk.Answer {
	if n, err := sdk.KVAdd("flaky", 1, 0); err != nil || n%2 == 1 {
		return failure(503, "this call fails, the next one does not", "server_error", "", nil)
	}
	return echo(r, 0, 0)
}

// limited answers the first calls of each window of each connection. Counter and end of the window live in one entry's
// time: the end is kept beside the counter and dies with it.
func limited(r *sdk.Request) *sdk.Answer {
	now := sdk.NowMS()
	n, err := sdk.KVAdd("limited:"+r.ConnectionID, 1, window)
	if n == 1 {
		_ = sdk.KVSet("limited-end:"+r.ConnectionID, []byte(strconv.FormatInt(now+window, 10)), window) // then the end is a guess
	}
	if err == nil && n <= perWindow {
		return echo(r, 0, 0)
	}
	end := now + window
	if b, err := sdk.KVGet("limited-end:" + r.ConnectionID); err == nil {
		if at, err := strconv.ParseInt(string(b), 10, 64); err == nil && at > now {
			end = at
		}
	}
	seconds := strconv.FormatInt((end-now+999)/1000, 10)
	return failure(429, "2 calls in 10 seconds are allowed; try again in "+seconds+"s", "rate_limit_error", "rate_limit_exceeded",
		map[string]string{"retry-after": seconds})
}

func failure(status int, message, kind, code string, headers map[string]string) *sdk.Answer {
	w := &sdk.Writer{}
	w.Object(func() {
		w.Key("error").Object(func() {
			w.Key("message").Text(message)
			w.Key("type").Text(kind)
			if code != "" {
				w.Key("code").Text(code)
			}
		})
	})
	return &sdk.Answer{Status: status, Headers: headers, Body: w.Bytes()}
}
