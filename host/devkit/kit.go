package devkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirgate/weir/host/plugin"
)

// Kit is the gateway that is asked, as far as plugins can see it. The zero value has no built-in plugins. Its methods are safe
// for concurrent use.
type Kit struct {
	Version         string           // of the gateway, told to guests
	Builtins        []plugin.Builtin // that a file is loaded beside
	RequireExamples bool             // as plugins.require_examples
}

func (k Kit) options() plugin.Options {
	return plugin.Options{Version: k.Version, Builtins: k.Builtins, RequireExamples: k.RequireExamples}
}

// read reads a plugin file, as far as it can be one.
func read(file string) ([]byte, error) {
	if ext := filepath.Ext(file); ext != ".yaml" && ext != ".wasm" {
		return nil, fmt.Errorf("%s is no plugin file by its name; name it .yaml (a pack's source) or .wasm (a module)", file)
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read (%w); name a file that is there", file, reason(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name the plugin file in it", file)
	case info.Size() > plugin.MaxFile:
		return nil, fmt.Errorf("%s has %d bytes, at most %d are allowed; make it smaller", file, info.Size(), plugin.MaxFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w); name a file that is there", file, reason(err))
	}
	return b, nil
}

// reason is an error of the file system without the path, which its sentence names already.
func reason(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// load puts the content into a folder of its own, and has a runtime say what it makes of it.
func (k Kit) load(ctx context.Context, name string, content []byte) (plugin.Status, error) {
	dir, err := os.MkdirTemp("", "weir-check-")
	if err != nil {
		return plugin.Status{}, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		return plugin.Status{}, err
	}
	o := k.options()
	o.Dir = dir
	r := plugin.New(o)
	defer func() { _ = r.Close(context.WithoutCancel(ctx)) }() // nothing is kept, so nothing can be lost
	if err := r.Start(ctx); err != nil {
		return plugin.Status{}, err
	}
	for _, s := range r.List() {
		if s.Origin == plugin.OriginFolder {
			return s, nil
		}
	}
	return plugin.Status{}, errors.Join(ctx.Err(), fmt.Errorf("the file %s was not looked at", name))
}
