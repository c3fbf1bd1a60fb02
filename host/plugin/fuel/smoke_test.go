package fuel

import (
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"os"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	b, err := os.ReadFile("../../../plugins/demo/demo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		at := time.Now()
		out, rep, err := Rewrite(b, Options{})
		t.Log(time.Since(at), rep, err)
		_ = out
	}
	out, _, err := Rewrite(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][]byte{b, out} {
		ctx := t.Context()
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2&^api.CoreFeatureSIMD).WithMemoryLimitPages(512))
		at := time.Now()
		_, err = r.CompileModule(ctx, x)
		t.Log(time.Since(at), err)
		r.Close(ctx)
	}
}
