package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const guide = "../../docs/plugins"

// PLG-6, PLG-7, PLG-1: each page of the author's guide is followed to the letter, from an empty folder: its files are written, its
// commands are run, and what they are said to print they print.
//
// A block of code is ```LANGUAGE and what it is: `sh` runs in a shell that ends with the first fault; `sh fails` is one that must
// fail; `sh terminal` is a gateway that stays until the page ends; `LANGUAGE file=NAME` is a file; `text` after a block of sh is
// what it prints, where "..." stands for anything, also for lines; `text terminal` is a line that the gateway prints;
// `LANGUAGE` alone is only read.
func TestGuide(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(guide, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := blocksOf(string(b))
		if !slices.ContainsFunc(blocks, func(b block) bool { return b.language == "sh" || b.file != "" }) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			for i, b := range blocks {
				want := ""
				if i+1 < len(blocks) && blocks[i+1].language == "text" && !blocks[i+1].is("terminal") {
					want = blocks[i+1].body
				}
				r.follow(b, want)
			}
		})
	}
}

// Every page of the guide is reached from its first one, and no link leads nowhere.
func TestGuideLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(guide, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	first, err := os.ReadFile(filepath.Join(guide, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !bytes.Contains(first, []byte("]("+name+")")) {
			t.Errorf("README.md does not name %s", name)
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(guide, m[1])); err != nil {
				t.Errorf("%s: the link %s leads nowhere", filepath.Base(page), m[1])
			}
		}
	}
}

// block is one block of code of a page.
type block struct {
	line           int
	language, file string
	words          []string // after the language
	body           string
}

func blocksOf(page string) []block {
	var list []block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		fence, ok := strings.CutPrefix(line, "```")
		switch {
		case !ok && open != nil:
			open.body += line + "\n"
		case ok && open != nil:
			list = append(list, *open)
			open = nil
		case ok:
			words := strings.Fields(fence)
			open = &block{line: i + 1}
			if len(words) > 0 {
				open.language, open.words = words[0], words[1:]
			}
			for _, w := range open.words {
				if file, ok := strings.CutPrefix(w, "file="); ok {
					open.file = file
				}
			}
		}
	}
	return list
}

func (b block) is(word string) bool { return slices.Contains(b.words, word) }

// reader follows one page.
type reader struct {
	t       *testing.T
	dir     string
	env     []string
	address string // of the gateway
}

const written = "127.0.0.1:8787" // what pages call the gateway

func newReader(t *testing.T) *reader {
	dir := t.TempDir()
	r := &reader{t: t, dir: filepath.Join(dir, "empty")}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "WEIR_") && !strings.Contains(strings.SplitN(e, "=", 2)[0], "API_KEY") {
			r.env = append(r.env, e)
		}
	}
	r.env = append(r.env, "WEIR_LISTEN=127.0.0.1:0", "WEIR_SDK="+source, "TZ=UTC", "GORACE=atexit_sleep_ms=0", "LC_ALL=C.UTF-8")
	return r
}

func (r *reader) follow(b block, want string) {
	r.t.Helper()
	switch {
	case b.file != "":
		file := filepath.Join(r.dir, b.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.body), 0o600); err != nil {
			r.t.Fatal(err)
		}
	case b.language == "sh" && b.is("terminal"):
		r.serve(b)
	case b.language == "sh":
		r.run(b, want)
	case b.language == "text" && b.is("terminal"):
		r.heard(b)
	}
}

// serve starts a gateway that ends with the page.
func (r *reader) serve(b block) {
	r.t.Helper()
	log, err := os.Create(filepath.Join(r.dir, "..", "serve.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := r.shell(context.Background(), "exec "+strings.TrimSpace(b.body))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
		if r.t.Failed() {
			said, _ := os.ReadFile(log.Name())
			r.t.Logf("the gateway said:\n%s", said)
		}
	})
	for range 600 {
		if b, err := os.ReadFile(filepath.Join(r.dir, "weir-data", "addr")); err == nil && len(b) > 0 {
			r.address = strings.TrimPrefix(strings.TrimSpace(string(b)), "http://")
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("line %d: the gateway does not come up", b.line)
}

// heard waits for a line in the terminal of the gateway.
func (r *reader) heard(b block) {
	r.t.Helper()
	said := []byte(nil)
	for range 200 {
		said, _ = os.ReadFile(filepath.Join(r.dir, "..", "serve.log"))
		if matches("...\n"+b.body+"...\n", string(said)) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("line %d: the gateway does not say\n%s\nit said\n%s", b.line, b.body, said)
}

// run runs a block. What looks at a running gateway may look again for a while: it takes files after a moment.
func (r *reader) run(b block, want string) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		cmd := r.shell(r.t.Context(), b.body)
		out, err := cmd.CombinedOutput()
		said := string(out)
		if r.address != "" {
			said = strings.ReplaceAll(said, r.address, written)
		}
		fault := ""
		switch {
		case err == nil && b.is("fails"):
			fault = "it does not fail"
		case err != nil && !b.is("fails"):
			fault = err.Error()
		case want != "" && !matches(want, said):
			fault = "it does not print what the page says:\n" + want
		}
		if fault == "" {
			return
		}
		if r.address == "" || !looks(b.body) || time.Now().After(end) {
			r.t.Fatalf("line %d: %s\n%s\nprinted:\n%s", b.line, b.body, fault, said)
		}
	}
}

// looks says whether a block changes nothing, so that it can be run again.
func looks(body string) bool {
	for line := range strings.Lines(body) {
		if !regexp.MustCompile(`^(weir (plugin (list|show|versions|replay)|history|status|explain)|grep|curl)\b`).MatchString(line) {
			return false
		}
	}
	return true
}

func (r *reader) shell(ctx context.Context, script string) *exec.Cmd {
	if r.address != "" {
		script = strings.ReplaceAll(script, written, r.address)
	}
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
	cmd.Dir, cmd.Env = r.dir, append(slices.Clone(r.env), "PATH="+os.Getenv("PATH"))
	return cmd
}

// matches compares lines; "..." is anything, and alone on a line any lines. Blanks count as one: columns move with their content.
func matches(want, said string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for line := range strings.Lines(want) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "..." {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := strings.Split(line, "...")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		fmt.Fprintf(&pattern, "%s\n", strings.Join(parts, ".*"))
	}
	pattern.WriteString(`\z`)
	var plain strings.Builder
	for line := range strings.Lines(said) {
		plain.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return regexp.MustCompile(pattern.String()).MatchString(plain.String())
}
