package wire_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/sdk/wire"
)

// The bytes are those of ABI-5, written down.
func TestEventForms(t *testing.T) {
	in := wire.AppendEvent(nil, wire.Event{Stream: 0x01020304, Name: []byte("delta"), Data: []byte(`{"a":1}`)})
	if want := "\x04\x03\x02\x01\x05\x00delta{\"a\":1}"; string(in) != want {
		t.Errorf("ABI-5 the input of on_event is %q, want %q", in, want)
	}
	e, ok := wire.ReadEvent(in)
	if !ok || e.Stream != 0x01020304 || string(e.Name) != "delta" || string(e.Data) != `{"a":1}` {
		t.Errorf("%+v %v", e, ok)
	}
	for raw, want := range map[string]wire.EventAnswer{
		"":                        {},
		"\x00":                    {},
		"\x01":                    {Action: wire.EventDrop},
		"\x02\x01\x00xdata":       {Action: wire.EventReplace, Name: []byte("x"), Data: []byte("data")},
		"\x02\x00\x00":            {Action: wire.EventReplace, Name: []byte{}, Data: []byte{}},
		"\x03" + `{"error":{}}`:   {Action: wire.EventEnd, Data: []byte(`{"error":{}}`)},
		"\x01 what follows later": {Action: wire.EventDrop},
	} {
		if got, ok := wire.ReadEventAnswer([]byte(raw)); !ok || !cmp.Equal(got, want) {
			t.Errorf("ABI-5 %q reads as %+v, %v", raw, got, ok)
		}
	}
	for _, garbage := range []string{"\x04", "\x02", "\x02\x01", "\x02\x05\x00abcd", "\xff"} {
		if a, ok := wire.ReadEventAnswer([]byte(garbage)); ok {
			t.Errorf("ABI-5 %q reads as %+v", garbage, a)
		}
	}
	for _, cut := range []string{"", "12345", "1234\x02\x00x"} {
		if e, ok := wire.ReadEvent([]byte(cut)); ok {
			t.Errorf("ABI-5 %q reads as %+v", cut, e)
		}
	}
}

func FuzzEventAnswer(f *testing.F) {
	f.Add([]byte("\x02\x01\x00xdata"))
	f.Add([]byte("\x03{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := wire.ReadEventAnswer(b)
		if !ok {
			return
		}
		back := wire.AppendEventAnswer(nil, a)
		if a.Action >= wire.EventReplace && !bytes.Equal(back, b) {
			t.Fatalf("%q comes back as %q", b, back)
		}
		if again, ok := wire.ReadEventAnswer(back); !ok || again.Action != a.Action {
			t.Fatalf("%q", back)
		}
	})
}
