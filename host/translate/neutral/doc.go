// Package neutral owns the form in which a request, an answer and a stream of one dialect become those of another: what the
// dialects have in common, in one place, so that there are four readers and four writers and no pairs of them (TR-2). It holds
// data and the steps that belong to no dialect; nothing here does I/O. Values are not safe for concurrent use.
package neutral
