// Package sdk is what authors of Weir plugins import. It owns the exports of a guest module, so that a plugin is a Register
// call in init and a main that does nothing:
//
//	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags='-s -w' -o acme.wasm .
//
// Rules, providers and static plans are data: the host runs them itself, and a plugin with nothing else is never called
// after it was loaded. Functions (Plan, Respond, OnRestate, OnClassify) are for what a table cannot say. On other targets
// than wasm the same package runs a plugin's examples under go test: see RunExamples.
//
// It imports neither encoding/json nor fmt nor regexp, which would double the size of a guest and its compile time; Value
// reads JSON and Writer writes it.
package sdk
