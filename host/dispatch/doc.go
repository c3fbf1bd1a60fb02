// Package dispatch owns one call: resolve the targets, admit, attempt, judge, settle, and tell what happened. It is the only
// place where a verdict becomes state (gate 21) and where a client is promised an answer (the commit gate). It declares what
// it needs of plugins and counters; the host hands them in.
package dispatch
