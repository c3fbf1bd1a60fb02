package devkit

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/sdk/wire"
)

// caseOps are the operations that an example can have (ABI-2.4).
var caseOps = []string{"restate", "classify", "plan", "respond", "on_request", "on_response"}

// Cases reads examples as JSON Lines, each in the form of ABI-2.4: op, input, expect, and name and now_ms as far as wanted. A
// case without a name is called by its line. The error is that of r.
func Cases(name string, r io.Reader) ([]wire.Example, []LineFault, error) {
	var all []wire.Example
	faults, err := lines(name, r, func(n int, b []byte) error {
		var x wire.Example
		if err := decode(b, &x); err != nil {
			return err
		}
		switch {
		case !slices.Contains(caseOps, x.Op):
			return fmt.Errorf("op is %q; it must be one of %s", x.Op, strings.Join(caseOps, ", "))
		case len(x.Input) == 0 || x.Input[0] != '{':
			return fmt.Errorf("input is no object; give it the fields that %s gets", x.Op)
		case len(x.Expect) == 0:
			return fmt.Errorf("expect is missing; name the fields of the answer, or null for no opinion")
		}
		if x.Name == "" {
			x.Name = fmt.Sprintf("%s:%d", name, n)
		}
		all = append(all, x)
		return nil
	})
	return all, faults, err
}

// Test runs the examples of a plugin file and then the given cases, all of them (PLG-7). The findings are why the file does not
// load so far; then there are no results.
func (k Kit) Test(ctx context.Context, file string, cases []wire.Example) ([]plugin.Rehearsed, []Finding, error) {
	content, err := read(file)
	if err != nil {
		return nil, nil, err
	}
	results, f := plugin.Rehearse(ctx, k.options(), filepath.Base(file), content, cases)
	if f != nil {
		return nil, (&Report{File: file}).findings(f), nil
	}
	return results, nil, nil
}
