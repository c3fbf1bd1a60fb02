// Package body owns the bytes of one inference request: they are read once, looked at once and edited without ever being
// decoded into structs, so that what the gateway does not know passes through byte for byte (INF-16).
//
// A [Buffer] holds the body as it came, with room around it. Its [Scan] knows where each top-level member stands. An
// [Editor], compiled once from a plan's table, turns both into a [Payload] for one attempt. Where the edits leave one
// long stretch untouched, that stretch stays where it is and only the bytes around it are written anew, provided nobody
// reads them; the original comes back for the next attempt.
package body
