//go:build !race

package sdktest

const slowCompiler = false
