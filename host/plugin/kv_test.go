package plugin

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestKV(t *testing.T) { // ABI-6
	now := time.Unix(1000, 0)
	s := newSpace()
	if _, ok := s.get("a", now); ok {
		t.Error("found what was never set")
	}
	if !s.set("a", []byte("12345"), time.Second, 20, now) {
		t.Fatal("refused within the quota")
	}
	if b, ok := s.get("a", now.Add(999*time.Millisecond)); !ok || string(b) != "12345" {
		t.Errorf("got %q", b)
	}
	if _, ok := s.get("a", now.Add(time.Second)); ok {
		t.Error("found after its time")
	}
	if s.set("b", []byte(strings.Repeat("x", 15)), 0, 20, now) {
		t.Error("took more than the quota")
	}
	if !s.set("b", []byte(strings.Repeat("x", 15)), 0, 20, now.Add(2*time.Second)) {
		t.Error("what has ended still counts for the quota")
	}
	if !s.set("b", []byte("y"), 0, 20, now) || s.bytes != 2 {
		t.Errorf("a shorter value: %d bytes are counted", s.bytes)
	}
	if n, ok := s.add("n", 2, time.Second, 100, now); !ok || n != 2 {
		t.Errorf("add = %d", n)
	}
	if n, _ := s.add("n", 3, time.Hour, 100, now.Add(900*time.Millisecond)); n != 5 {
		t.Errorf("add = %d", n)
	}
	if n, _ := s.add("n", 1, time.Second, 100, now.Add(time.Second)); n != 1 {
		t.Errorf("a counter lives on after its time: %d", n)
	}
	if _, ok := s.add("much", 1, 0, 3, now); ok {
		t.Error("a counter took more than the quota")
	}
}

func TestKVIsAtomic(t *testing.T) { // ABI-6
	s, now := newSpace(), time.Unix(1000, 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				s.add("n", 1, 0, 100, now)
			}
		})
	}
	wg.Wait()
	if n, _ := s.add("n", 0, 0, 100, now); n != 800 {
		t.Errorf("counted %d", n)
	}
}

func TestSubset(t *testing.T) { // ABI-2.4
	for _, c := range []struct {
		expect, got string
		ok          bool
	}{
		{`{"a":1}`, `{"a":1.0,"b":2}`, true},
		{`{"a":{"b":[1,{"c":2}]}}`, `{"a":{"b":[1,{"c":2,"d":3}]}}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":null}`, `{}`, true},
		{`{"a":1}`, `{}`, false},
		{`null`, `null`, true},
		{`null`, `{"a":1}`, false},
		{`{"a":[1]}`, `{"a":[1,2]}`, false},
		{`{"a":"x"}`, `{"a":1}`, false},
		{`{}`, `null`, false}, // an answer, whatever it says
	} {
		if err := subset("", []byte(c.expect), []byte(c.got)); (err == nil) != c.ok {
			t.Errorf("%s of %s: %v", c.expect, c.got, err)
		}
	}
}

func TestGlob(t *testing.T) { // ABI-2
	for _, c := range []struct {
		pattern, s string
		ok         bool
	}{
		{"acme", "acme", true}, {"acme", "acme2", false}, {"acme-*", "acme-eu", true}, {"acme-*", "acme", false}, {"*", "", true},
		{"*-eu", "acme-eu", true}, {"a*b*c", "aXbYc", true}, {"a*b*c", "aXcYb", false}, {"ab*ba", "aba", false}, {"GPT-*", "gpt-5", true},
	} {
		if globMatch(c.pattern, c.s) != c.ok {
			t.Errorf("%s of %s is %v", c.pattern, c.s, !c.ok)
		}
	}
}

func TestRing(t *testing.T) { // ABI-8: stderr
	var r ring
	for range 3 {
		r.Write([]byte(strings.Repeat("a", 3000)))
	}
	r.Write([]byte("the end"))
	if s := r.String(); len(s) != maxStderr || !strings.HasSuffix(s, "the end") {
		t.Errorf("%d bytes, ending %q", len(s), s[len(s)-9:])
	}
}
