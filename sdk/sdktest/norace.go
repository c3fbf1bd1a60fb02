//go:build !race

package sdktest

const (
	slowCompiler = false
	usualCalls   = 20_000
	largeInput   = maxInput
	largeGarbage = 60_000
)
