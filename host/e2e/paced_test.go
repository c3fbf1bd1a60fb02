package e2e_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// INF-20, STM-13: 512 streams that each bring a word now and then are held side by side without a stall, each for less than 64 KB.
func TestManyPacedStreams(t *testing.T) {
	const streams, words = 512, 8
	const pace = 400 * time.Millisecond
	u := newUpstream(t)
	u.answers("key-paced", func(w http.ResponseWriter, r *http.Request, _ bool) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range words {
			send(w, chunk(i, fmt.Sprintf("word%d ", i)))
			select {
			case <-time.After(pace):
			case <-r.Context().Done():
				return
			}
		}
		send(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		send(w, "data: [DONE]")
	})
	g := serve(t, setup{config: fmt.Sprintf("providers:\n  - {id: paced, executor: openai-compatible, category: local, base_url: %s/v1}\nconnections:\n  - {id: paced, provider: paced, api_key: key-paced}\n", u.url)})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	defer client.CloseIdleConnections()
	before := resident(t, g.cmd.Process.Pid)

	var all sync.WaitGroup
	var mu sync.Mutex
	var worst time.Duration
	var faults []string
	for range streams {
		all.Go(func() {
			gap, err := watch(client, g.url, words)
			mu.Lock()
			defer mu.Unlock()
			worst = max(worst, gap)
			if err != nil {
				faults = append(faults, err.Error())
			}
		})
	}
	time.Sleep(pace * words / 2)
	each := (resident(t, g.cmd.Process.Pid) - before) / streams
	all.Wait()
	if len(faults) > 0 {
		t.Fatalf("%d of %d streams failed: %s", len(faults), streams, faults[0])
	}
	t.Logf("the longest gap between two words %v apart was %v; %d KB for each stream", pace, worst, each>>10)
	if limit := pace + 3*time.Second; worst > limit { // tests run beside it
		t.Errorf("a stream stalled for %v", worst)
	}
	if each >= 64<<10 {
		t.Errorf("each stream takes %d KB", each>>10)
	}
}

// watch reads one stream and returns the longest gap between its events.
func watch(client *http.Client, url string, words int) (gap time.Duration, err error) {
	resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"paced/m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	last := time.Now()
	got := 0
	s := bufio.NewScanner(resp.Body)
	done := false
	for s.Scan() {
		line := s.Text()
		if !strings.HasPrefix(line, "data: ") {
			continue
		}
		if now := time.Now(); got > 0 {
			gap = max(gap, now.Sub(last))
			last = now
		} else {
			last = now
		}
		got++
		done = done || line == "data: [DONE]"
	}
	if !done || got != words+2 {
		return gap, fmt.Errorf("%d of %d events, done %t: %w", got, words+2, done, s.Err())
	}
	return gap, nil
}

// resident is the memory of a process in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
