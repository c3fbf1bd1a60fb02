package main

import (
	"bytes"
	"os"
	"testing"
)

// PLG-12: only a clear yes grants, and only a person can say it.
func TestGrantIsAsked(t *testing.T) {
	for answer, want := range map[string]string{"y\n": "all", " YES \n": "all", "n\n": "none", "No": "none", "\n": "", "yep\n": "", "all\n": ""} {
		if got := meant(answer); got != want {
			t.Errorf("%q grants %q, want %q", answer, got, want)
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	for _, in := range []*app{{in: bytes.NewBufferString("y\n")}, {in: r}, {in: null}} {
		in.out, in.err = &bytes.Buffer{}, &bytes.Buffer{}
		p := &pluginAdd{g: &gateway{app: in}, name: "acme"}
		if got, err := p.ask(); err == nil {
			t.Errorf("nobody was asked, and it grants %q", got)
		}
	}
}
