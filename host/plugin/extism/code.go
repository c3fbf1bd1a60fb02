package extism

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weirgate/weir/host/plugin/binary"
)

// Options are how a guest is compiled.
type Options struct {
	Runtime   wazero.RuntimeConfig // features and the most memory of any guest
	CacheDir  string               // keeps compiled code; "": none is kept
	Functions []Function           // of the module extism:host/user
}

// Code is the compiled guest of one generation. Safe for concurrent use.
type Code struct {
	plugin  *sdk.CompiledPlugin
	cache   wazero.CompilationCache
	exports map[string]bool
}

// Exports says whether the metered guest exports a function of that name.
func (c *Code) Exports(name string) bool { return c.exports[name] }

// Context makes compilations with it find, and leave, in a cache of compiled code what Compile does: the guard is part of the
// key.
func Context(ctx context.Context) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, guards{})
}

// Compile compiles a module that was checked and metered. The SDK's own HTTP and variables are off, WASI is on without
// anything behind it, and there is no timeout: fuel stops a guest (ABI-10).
func Compile(ctx context.Context, metered []byte, o Options) (c *Code, err error) {
	outline, err := binary.Parse(metered)
	if err != nil {
		return nil, err
	}
	c = &Code{cache: wazero.NewCompilationCache(), exports: map[string]bool{}}
	for _, e := range outline.Exports {
		c.exports[e.Name] = e.Kind == binary.Func
	}
	if o.CacheDir != "" {
		if c.cache, err = wazero.NewCompilationCacheWithDir(o.CacheDir); err != nil {
			return nil, fmt.Errorf("cannot use the cache directory %s: %w", o.CacheDir, err)
		}
	}
	defer func() {
		if r := recover(); r != nil { // the SDK panics when its own modules do not compile in time
			err = fmt.Errorf("%v", r)
		}
		if err != nil { // what the SDK leaves behind is only held by the cache
			c.Close()
			c = nil
		}
	}()
	c.plugin, err = sdk.NewCompiledPlugin(Context(ctx), sdk.Manifest{
		Wasm:   []sdk.Wasm{sdk.WasmData{Data: metered}},
		Memory: &sdk.ManifestMemory{}, // no variables, no bytes of HTTP
	}, sdk.PluginConfig{RuntimeConfig: o.Runtime.WithCompilationCache(c.cache), EnableWasi: true}, functions(o.Functions))
	return c, err
}

// Close frees the compiled code. Its instances must be closed before.
func (c *Code) Close() {
	ctx := context.Background()
	if c.plugin != nil {
		_ = c.plugin.Close(ctx) // it only frees; there is nothing to do about an error
	}
	_ = c.cache.Close(ctx) // closing the runtime alone would leave the code in memory
}

// Is says whether a module with an import from that module is a guest of Extism.
func Is(importModule string) bool { return importModule == envModule }

const (
	envModule  = "extism:host/env"
	UserModule = "extism:host/user" // UserModule is where a guest imports the functions of ABI-6 from.
	wasiModule = "wasi_snapshot_preview1"
)

// Env returns the type of a function that the kernel offers to guests, as "(i64)->(i32)".
func Env(name string) (signature string, ok bool) {
	for _, row := range kernel {
		for n := range strings.FieldsSeq(row.names) {
			if n == name {
				return row.signature, true
			}
		}
	}
	return "", false
}

// kernel is what the module extism:host/env has in the SDK. A guest that imports more is refused by name before it is
// compiled.
var kernel = []struct{ signature, names string }{
	{"(i64)->(i64)", "alloc length length_unsafe load_u64 input_load_u64 config_get var_get"},
	{"(i64)->(i32)", "load_u8 input_load_u8"},
	{"(i64)->()", "free error_set log_trace log_debug log_info log_warn log_error"},
	{"(i64 i64)->()", "store_u64 input_set output_set var_set"},
	{"(i64 i32)->()", "store_u8"},
	{"()->(i64)", "input_length input_offset output_length output_offset error_get memory_bytes http_headers"},
	{"()->()", "reset"},
	{"(i64 i64)->(i64)", "http_request"},
	{"()->(i32)", "http_status_code get_log_level"},
}
