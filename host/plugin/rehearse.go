package plugin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Rehearsed is how one example went.
type Rehearsed struct {
	Name string
	Op   string
	Err  error // why the answer is not what the example expects; nil: it is
}

// Rehearse loads the content of a plugin file to the side, as a third-party plugin of a gateway with o and without a look at
// other plugins, and runs all examples of the plugin and then the given ones, where a load stops at the first that fails
// (ABI-2.4, PLG-7). It is granted what its manifest asks for: its kv is empty and calls of http_fetch are denied all the same, as in
// each example. The name says by its ending whether it is a pack's source. The fault is that of the load.
func Rehearse(ctx context.Context, o Options, name string, content []byte, more []wire.Example) ([]Rehearsed, *Fault) {
	r := New(o)
	defer func() { _ = r.Close(context.WithoutCancel(ctx)) }() // nothing is kept, so nothing can be lost
	v, f := r.loader().prepare(ctx, source{origin: OriginFolder, file: name, yaml: isYAML(name), bytes: content, rehearsed: true})
	defer v.release()
	if f != nil {
		f.At, f.File = r.o.Now(), name
		return nil, f
	}
	set := rules.Compile(rules.Source{Table: v.table, Plugin: v.name, Digest: v.digest, Matches: v.manifest.Matches})
	var all []Rehearsed
	for _, list := range [][]wire.Example{v.manifest.Examples, more} {
		for i, x := range list {
			got, err := v.example(ctx, set, x, time.UnixMilli(x.NowMS))
			if err == nil {
				err = subset("", x.Expect, got)
			}
			all = append(all, Rehearsed{Name: cmp.Or(x.Name, fmt.Sprint(i)), Op: x.Op, Err: err})
		}
	}
	return all, nil
}
