//go:build race

package sdktest

// Under the race detector the compiler needs a minute for what takes it a second, so that large guests are interpreted there,
// a thousand times slower: they get fewer calls and shorter inputs. What is said of the kit's numbers holds without it.
const (
	slowCompiler = true
	usualCalls   = 60
	largeInput   = 8 << 10
	largeGarbage = 2_000
)
