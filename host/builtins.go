package host

import "github.com/weirgate/weir/host/plugin"

// Builtins returns the plugins that every Host has, in the order in which they own providers: for what judges or checks as a
// gateway does, without one.
func Builtins() ([]plugin.Builtin, error) { return builtinPlugins() }
