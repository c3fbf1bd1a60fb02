package main

import (
	"testing"

	"github.com/weirgate/weir/sdk"
	"github.com/weirgate/weir/sdk/sdktest"
)

// The examples, as an ordinary program.
func TestPlugin(t *testing.T) { sdk.RunExamples(t) } // ABI-12

// The same examples and all else that a gateway may do to a guest, in a sandbox.
func TestGuest(t *testing.T) { // ABI-1, ABI-2.4, ABI-12
	r := sdktest.RunGo(t, ".")
	if len(r.Costs) != 1 || r.Costs[0].Op != "classify" || r.Size > 2_500_000 {
		t.Errorf("%d bytes, %+v", r.Size, r.Costs)
	}
}
