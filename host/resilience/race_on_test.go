//go:build race

package resilience_test

const raceDetector = true
