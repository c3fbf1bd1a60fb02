//go:build race

package plugin

// slowCompiler: under the race detector wazero needs a minute for what takes it a second, so that large guests are
// interpreted there.
const slowCompiler = true
