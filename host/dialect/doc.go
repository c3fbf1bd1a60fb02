// Package dialect owns the wire dialects that clients speak: which error body, which stream error and which status belong to
// each (INF-30 to INF-38). It writes bytes from facts and does no I/O.
package dialect
