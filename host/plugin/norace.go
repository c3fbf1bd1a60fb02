//go:build !race

package plugin

// slowCompiler is set only under the race detector.
const slowCompiler = false
