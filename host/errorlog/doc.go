// Package errorlog owns the record of what upstreams answered when an attempt failed, and what it was taken for (OBJ-19): lines in
// the format of the corpus, without secrets, written behind the requests, kept in the store and pruned. It also replays them: what
// a plugin would decide otherwise than the ones in force (PLG-9).
package errorlog
