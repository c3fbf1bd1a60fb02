//go:build !race

package fuel

// raced tells that the race detector runs.
const raced = false
