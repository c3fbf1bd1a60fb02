package jsonw_test

import (
	"encoding/json"
	"testing"

	"github.com/weirgate/weir/host/translate/jsonw"
)

func TestWriter(t *testing.T) {
	var w jsonw.Writer
	w.Open().Key("a").String("x\"y").Key("n").Int(-3).Key("l").List().Bool(true).Null().Raw([]byte(`1.50`)).Open().Close().End().
		Key("none").Raw(nil).Key("o").Open().Key("k").List().End().Close().Close()
	if want := `{"a":"x\"y","n":-3,"l":[true,null,1.50,{}],"none":null,"o":{"k":[]}}`; string(w.B) != want {
		t.Errorf("got  %s\nwant %s", w.B, want)
	}
}

// FuzzAppendString: whatever the text, what is written is JSON that reads as the same text, bad UTF-8 replaced.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "q\"\\\n\r\t\x00\x1f", "ünï 用户 🙂", "bad \xff\xfe end", "<a href='x'>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(jsonw.AppendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := string([]rune(s)); got != want {
			t.Errorf("%q became %q", s, got)
		}
	})
}
