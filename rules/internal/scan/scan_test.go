package scan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFirstAgreesWithIndex(t *testing.T) {
	letters := rapid.SampledFrom([]string{"a", "b", "ab", "é", "额", "\x00"})
	text := func(most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(letters, 1, most).Draw(t, "s"), "") })
	}
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfNDistinct(text(6), 0, 40, rapid.ID[string]).Draw(t, "patterns")
		s := text(60).Draw(t, "text")
		for i, end := range NewAutomaton(patterns).First(s) {
			want := Absent
			if at := strings.Index(s, patterns[i]); at >= 0 {
				want = int32(at + len(patterns[i]))
			}
			if end != want {
				t.Fatalf("%q in %q ends at %d, want %d", patterns[i], s, end, want)
			}
		}
	})
}

// More states than rows, every byte in a pattern, patterns inside patterns.
func TestLargeAutomaton(t *testing.T) {
	var patterns []string
	for a := range 256 {
		for b := range 8 {
			patterns = append(patterns, string([]byte{byte(a), byte(b), byte(a + b)}))
		}
	}
	patterns = append(patterns, "\x01", "\x01\x02", strings.Repeat("x", 3000))
	a := NewAutomaton(patterns)
	text := strings.Repeat("y", 100) + "\x01\x02\x03" + strings.Repeat("x", 3001)
	for i, end := range a.First(text) {
		at := strings.Index(text, patterns[i])
		if (end == Absent) != (at < 0) || at >= 0 && int(end) != at+len(patterns[i]) {
			t.Errorf("pattern %d ends at %d, is at %d", i, end, at)
		}
	}
	if ends := NewAutomaton(nil).First("x"); len(ends) != 0 {
		t.Error(ends)
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"quota", "quota"}, {"QUOTA Zz@[", "quota zz@["}, {"额度 ABC", "额度 abc"}, {"\u212Aelvin", "kelvin"}, {"ſ", "s"},
	} {
		if got := Fold(c.in); got != c.want {
			t.Errorf("Fold(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	for _, pair := range [][2]string{{"ПРЕДЕЛ", "предел"}, {"ΌΡΙΟ", "όριο"}, {"Σ", "ς"}, {"É", "é"}} {
		if Fold(pair[0]) != Fold(pair[1]) {
			t.Errorf("%q and %q fold differently", pair[0], pair[1])
		}
	}
}

// Folded texts are equal exactly when a case-insensitive expression says so.
func TestFoldAgreesWithRegexp(t *testing.T) {
	for r := rune(1); r < 0x30000; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		upper := strings.ToUpper(string(r))
		if utf8.RuneCountInString(upper) != 1 || upper == string(r) {
			continue
		}
		if (Fold(upper) == Fold(string(r))) != regexp.MustCompile("(?i)^"+regexp.QuoteMeta(string(r))+"$").MatchString(upper) {
			t.Errorf("%q and %q", string(r), upper)
		}
	}
}

func TestCut(t *testing.T) {
	for n, want := range map[int]string{-1: "", 0: "", 1: "a", 2: "a", 3: "aé", 4: "aéb", 9: "aéb"} {
		if got := Cut("aéb", n); got != want {
			t.Errorf("Cut(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestNeeds(t *testing.T) {
	is := func(before, after int, texts ...string) Need {
		return Need{texts, Reach{Runes: before}, Reach{Runes: after}}
	}
	for expr, want := range map[string][]Need{
		"(?i)Try Again in ([0-9.]{1,9})s":  {is(0, 10, "try again in ")},
		"model .* not found":               {is(0, Far, "model "), is(Far, 0, " not found")},
		"(quota|limit) reached":            {is(0, 8, "quota", "limit"), is(5, 0, " reached")},
		"(?:quota|limit)s?":                {is(0, 1, "quota", "limit")},
		"(?:quota|x)":                      nil,
		"(?:abc)?d":                        nil,
		"(?:abcd)+":                        {is(0, Far, "abcd")},
		"(?:abcd){2,3}":                    {is(0, 8, "abcd")},
		"x(?:abcd){2,}":                    {is(1, Far, "abcd")},
		"(?:abc[0-9]defg|hij)k[lm]no?pqrs": {is(4, 8, "defg", "hij"), is(12, 0, "pqrs")},
		"额度.{0,9}不足":                       {is(0, 11, "额度"), is(11, 0, "不足")},
		`max(?: \w+){0,2} many\d*`:         {{[]string{"max"}, Reach{}, Reach{7, 3}}, {[]string{" many"}, Reach{5, 2}, Reach{0, 1}}},
		`max\S+many`:                       {is(0, Far, "max"), is(Far, 0, "many")},
		"a.b":                              nil,
		"(":                                nil,
	} {
		if diff := cmp.Diff(want, Needs(expr)); diff != "" {
			t.Errorf("%s: %s", expr, diff)
		}
	}
}

func TestShape(t *testing.T) {
	for _, c := range []struct {
		expr string
		want Shape
	}{
		{"(?i)Quota", Shape{Exact: true}},
		{"Quota", Shape{}},
		{"额度", Shape{Exact: true}},
		{"(?i)quota$", Shape{Anchored: true}},
		{`(?i)\bquota`, Shape{Edges: true}},
		{"(?i)(token|key)s?.{0,20}gone", Shape{Gap: &Gap{Words: []string{"tokens", "token", "keys", "key"}, Most: 20, Rest: "(?i:GONE)"}}},
		{"(?is)token.*gone", Shape{Gap: &Gap{Words: []string{"token"}, Most: Far * Far, Lines: true, Rest: "(?i:GONE)"}}},
		{"token.{0,20}gone", Shape{}},
		{"(?i)token.{1,20}gone", Shape{}},
		{"(?i)tokens+.{0,20}gone", Shape{}},
		{`(?i)token.{0,20}gone\b`, Shape{Edges: true}},
		{"(?i)(token)?.{0,20}gone", Shape{}},
	} {
		got := ShapeOf(c.expr)
		if got.Needs = nil; !cmp.Equal(got, c.want) {
			t.Errorf("%s: %s", c.expr, cmp.Diff(c.want, got))
		}
	}
}

// A match holds a text of each need, with no more around it than the need says.
func FuzzNeeds(f *testing.F) {
	f.Add("(?i)quota|limit[0-9]", "LIMIT9")
	f.Add("(?i)(a|b)+kelvin", "b\u212AELVIN")
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 100 || !utf8.ValidString(text) || !utf8.ValidString(expr) {
			return
		}
		expr = "(?i)" + expr
		re, err := regexp.Compile(expr)
		needs := Needs(expr)
		if err != nil {
			return
		}
		at := re.FindStringIndex(text)
		if at == nil {
			return
		}
		folded := []rune(Fold(text[at[0]:at[1]]))
		for _, n := range needs {
			if !slices.ContainsFunc(n.Texts, func(l string) bool { return within(folded, []rune(l), n) }) {
				t.Fatalf("%q matches %q, which has nothing of %v in its place", expr, string(folded), n)
			}
		}
	})
}

// within reports whether text stands in a match where the need says.
func within(match, text []rune, n Need) bool {
	longest := LongestWord(string(match))
	for i := range len(match) - len(text) + 1 {
		if slices.Equal(match[i:i+len(text)], text) && i <= n.Before.In(longest) && len(match)-i-len(text) <= n.After.In(longest) {
			return true
		}
	}
	return false
}

func TestBranches(t *testing.T) {
	for expr, want := range map[string]string{"abc": "", "(?i)a+b|cd": "2", "(a|b)c": "", "xa|xb": "", "(": "", "^a|(?m:^b$)|c{2,3}": "3", "(?i)a.{0,9}(b|cd)": "2"} {
		got := Branches(expr, 10)
		if len(got) == 0 && want == "" {
			continue
		}
		if fmt.Sprint(len(got)) != want {
			t.Errorf("%s: %q", expr, got)
		}
		whole := regexp.MustCompile(expr)
		for _, text := range []string{"AAB", "cd", "ba", "\nb\n", "ccc", "x", "aab", "CD"} {
			one := false
			for _, b := range got {
				one = one || regexp.MustCompile(b).MatchString(text)
			}
			if one != whole.MatchString(text) {
				t.Errorf("%s on %q: %v", expr, text, one)
			}
		}
	}
}
