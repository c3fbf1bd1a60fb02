package plugins

import _ "embed" // of the guests

// Demo is the guest behind weir serve --demo. It is committed, so that go get of the library just works; make plugins builds
// it again from the folder demo, and a test compares.
//
//go:embed demo/demo.wasm
var Demo []byte
