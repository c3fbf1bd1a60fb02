package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that exchange their names all get their new content, though each name is taken while the first of them is read.
func TestFilesThatSwapNames(t *testing.T) { // PLG-1
	t.Parallel()
	named := func(name, reason string) string {
		return strings.Replace(reasoned(reason), "acme-rules", name, 1)
	}
	dir := t.TempDir()
	put := func(file, text string) { // as an editor does, so that no half is seen
		write(t, filepath.Join(dir, "."+file), text)
		if err := os.Rename(filepath.Join(dir, "."+file), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	put("a.yaml", named("one", "overloaded"))
	put("b.yaml", named("two", "overloaded"))
	put("c.yaml", named("three", "overloaded"))
	r := started(t, Options{Dir: dir})
	names := func() string {
		var out []string
		for _, file := range []string{"a.yaml", "b.yaml", "c.yaml"} {
			st := byFile(r, file)
			if st.Fault != nil || st.State != StateActive {
				return "a fault: " + st.Fault.Error()
			}
			out = append(out, st.Name)
		}
		return strings.Join(out, " ")
	}
	if names() != "one two three" {
		t.Fatal(names())
	}
	put("a.yaml", named("two", "overloaded"))
	put("b.yaml", named("one", "overloaded"))
	eventually(t, "PLG-1 two files swapped", func() bool { return names() == "two one three" })

	put("a.yaml", named("one", "overloaded"))
	put("b.yaml", named("three", "overloaded"))
	put("c.yaml", named("two", "overloaded"))
	eventually(t, "PLG-1 three files in a ring", func() bool { return names() == "one three two" })

	put("a.yaml", named("two", "overloaded")) // no ring: the name stays taken
	eventually(t, "the name is taken", func() bool { return byFile(r, "a.yaml").Fault != nil })
	if st := byFile(r, "a.yaml"); st.Fault.Code != CodeNameTaken || st.Name == "" || st.State != StateActive {
		t.Errorf("PLG-2: what was active does not stay: %+v", st)
	}
}
