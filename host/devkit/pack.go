package devkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/host/plugin/pack"
	"github.com/weirgate/weir/sdk/sdktest"
)

// Pack makes a module of a pack's source (ABI-2.3), when it passes all that Check looks at; else the module is nil and the
// report says why. Equal sources give equal modules.
func (k Kit) Pack(ctx context.Context, file string) ([]byte, Report, error) {
	if filepath.Ext(file) != ".yaml" {
		return nil, Report{}, fmt.Errorf("%s is not the source of a pack; name a .yaml file", file)
	}
	r, err := k.Check(ctx, file)
	if err != nil || !r.OK {
		return nil, r, err
	}
	return r.module, r, nil
}

// Build compiles the Go guest in the folder dir with the Go toolchain that is installed (PLG-7). The error has the words of the
// compiler.
func Build(ctx context.Context, dir string) ([]byte, error) {
	if found, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(found) == 0 {
		return nil, fmt.Errorf("there is no Go program in %s; name the folder of a Go plugin", dir)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("the go command is not installed here; install Go, or write the plugin as a pack (--lang pack)")
	}
	module, err := sdktest.Build(ctx, dir)
	if err != nil && strings.Contains(err.Error(), "github.com/weirgate/weir@") || err != nil && strings.Contains(err.Error(), "package github.com/weirgate/weir/") {
		return nil, fmt.Errorf("%s does not find the sdk: run `go mod edit -replace github.com/weirgate/weir=FOLDER` there, FOLDER being the sources of Weir, "+
			"and `go mod tidy` (%w)", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not compile: %w", dir, err)
	}
	return module, nil
}

// Inspection is what is to be seen of a plugin file (PLG-8).
type Inspection struct {
	File        string          `json:"file"`
	Size        int             `json:"size"`   // of the file
	Digest      string          `json:"digest"` // sha256 of the module
	Loader      string          `json:"loader"` // empty when the file is refused
	Imports     []string        `json:"imports"`
	Exports     []string        `json:"exports"`
	Permissions json.RawMessage `json:"permissions"` // that the manifest asks for
	Manifest    json.RawMessage `json:"manifest"`    // null when it cannot be read
	Refused     []Finding       `json:"refused"`     // why a gateway would not load it
	Warnings    []Finding       `json:"warnings"`
}

// Inspect shows a plugin file without a judgement: what the host would refuse is one of its fields. An error means that there
// is nothing to be looked at.
func (k Kit) Inspect(ctx context.Context, file string) (Inspection, error) {
	content, err := read(file)
	if err != nil {
		return Inspection{}, err
	}
	r, err := k.Check(ctx, file)
	if err != nil {
		return Inspection{}, err
	}
	n := Inspection{
		File: file, Size: len(content), Loader: r.status.Loader, Imports: []string{}, Exports: []string{}, Refused: []Finding{},
		Permissions: json.RawMessage("{}"), Manifest: json.RawMessage("null"), Warnings: r.Warnings,
	}
	for _, s := range r.Steps {
		n.Refused = append(n.Refused, s.Findings...)
	}
	n.outline(r.module)
	if raw := r.manifest(); raw != nil {
		n.Manifest = raw
		var m struct{ Permissions json.RawMessage }
		if json.Unmarshal(raw, &m) == nil && m.Permissions != nil {
			n.Permissions = m.Permissions
		}
	}
	return n, nil
}

// manifest is the answer of describe, or the data of a pack that is refused, as far as it is JSON.
func (r *Report) manifest() json.RawMessage {
	raw := []byte(r.status.Manifest)
	if raw == nil && r.module != nil {
		raw, _ = pack.Manifest(r.module)
	}
	if !json.Valid(raw) {
		return nil
	}
	return raw
}

func (n *Inspection) outline(module []byte) {
	if module == nil {
		return
	}
	n.Digest = digest(module)
	o, err := binary.Parse(module)
	if err != nil {
		return // it stands among the reasons to refuse
	}
	for _, im := range o.Imports {
		n.Imports = append(n.Imports, fmt.Sprintf("%s.%s %s%s", im.Module, im.Name, im.Kind, typed(im.Type)))
	}
	for _, e := range o.Exports {
		n.Exports = append(n.Exports, fmt.Sprintf("%s %s%s", e.Name, e.Kind, typed(e.Type)))
	}
}

func typed(s binary.Signature) string {
	if s == "" {
		return ""
	}
	return " " + string(s)
}

// Source returns the YAML that a pack was made of (ABI-2.3).
func Source(file string) ([]byte, error) {
	content, err := read(file)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(file) == ".yaml" {
		return content, nil
	}
	if _, err := binary.Parse(content); err != nil {
		return nil, fmt.Errorf("%s is damaged or no WebAssembly module (%w); copy or build it again", file, err)
	}
	source, ok := pack.Source(content)
	if !ok {
		return nil, fmt.Errorf("%s carries no source; only packs made by weir plugin pack do", file)
	}
	return source, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
