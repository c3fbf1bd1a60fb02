// Package e2e holds black-box tests: they build the program weir, run it as a person would, and let scripted upstreams on
// loopback misbehave. It exports nothing.
package e2e
