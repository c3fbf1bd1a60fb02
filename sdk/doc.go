// Package sdk is what authors of Weir plugins import. It owns the exports of a guest module, so that a plugin is a Register
// call in init and a main that does nothing:
//
//	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags='-s -w' -o acme.wasm .
//
// Rules, providers and static plans are data: the host runs them itself, and a plugin with nothing else is never called
// after it was loaded. Functions (Plan, Respond, OnRestate, OnClassify) are for what a table cannot say. On other targets
// than wasm the same package runs a plugin's examples under go test: see RunExamples.
//
// A guest that is built with it imports neither encoding/json nor fmt nor regexp, which would double its size and its compile
// time; Value reads JSON where it lies and Writer writes it. Only RunExamples, which no guest has, stands on package rules.
package sdk
