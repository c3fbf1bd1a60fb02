package devkit

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/weirgate/weir/sdk/wire"
)

// The languages of a new plugin (PLG-6).
const (
	LangPack = "pack"
	LangGo   = "go"
)

// New says what to write.
type New struct {
	Name string // of the plugin, and of its provider when it is an executor
	Kind string // wire.KindExecutor, wire.KindRestatement or wire.KindClassifier
	Lang string // LangPack or LangGo
	// Of a Go plugin: the version of this module that it needs, and, unless it is empty, a folder with its sources to take in
	// its place.
	Require string
	Sources string
}

//go:embed templates
var templates embed.FS

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,62}$`)

// Write writes a folder that builds, passes its own tests and loads as it is (PLG-6), and returns its files. A folder that is
// there and not empty is left alone, with an error.
func (n New) Write(dir string) ([]string, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("the folder %s is there and not empty; name another one with --dir", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the folder %s cannot be made (%w); name another one with --dir", dir, reason(err))
	}
	var written []string
	for _, from := range []string{n.Lang + "/all", n.Lang + "/" + n.Kind} {
		some, err := n.copy("templates/"+from, dir)
		if err != nil {
			return nil, err
		}
		written = append(written, some...)
	}
	slices.Sort(written)
	return written, nil
}

func (n New) check() error {
	switch {
	case !nameForm.MatchString(n.Name):
		return fmt.Errorf("%q is no name for a plugin; use 2 to 63 lower-case letters, digits and hyphens, no hyphen first", n.Name)
	case n.Kind != wire.KindExecutor && n.Kind != wire.KindRestatement && n.Kind != wire.KindClassifier:
		return fmt.Errorf("the kind %q is unknown; use executor, restatement or classifier", n.Kind)
	case n.Lang != LangPack && n.Lang != LangGo:
		return fmt.Errorf("the language %q is unknown; use pack (YAML) or go", n.Lang)
	case n.Lang == LangGo && n.Require == "":
		return fmt.Errorf("this is a development build, whose sdk no Go toolchain can download; name the folder of its sources with --sdk")
	}
	return nil
}

// copy fills the templates of one folder. The name plugin stands for that of the new one.
func (n New) copy(from, dir string) ([]string, error) {
	files, err := fs.Glob(templates, from+"/*.tmpl")
	if err != nil {
		return nil, err
	}
	var written []string
	for _, file := range files {
		t, err := template.New(filepath.Base(file)).Delims("<%", "%>").ParseFS(templates, file)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, n); err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".tmpl")
		if rest, ok := strings.CutPrefix(name, "plugin."); ok {
			name = n.Name + "." + rest
		}
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, text.Bytes(), 0o644); err != nil {
			return nil, fmt.Errorf("%s cannot be written (%w); name another folder with --dir", to, reason(err))
		}
		written = append(written, to)
	}
	return written, nil
}
