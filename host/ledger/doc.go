// Package ledger owns the record of requests (OBJ-17): one row per request with its attempts, tokens, times and outcome, made of the
// trail behind the answer, kept in the store and pruned. It holds no prompt unless the operator says so (OBS-4). It also keeps the
// traces of the last requests, in memory.
package ledger
