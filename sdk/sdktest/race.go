//go:build race

package sdktest

// slowCompiler: under the race detector the compiler needs a minute for what takes it a second, so that large guests are
// interpreted there.
const slowCompiler = true
