// Package mend owns what has to be put right in a stream whose upstream speaks the client's own dialect: what the upstream left out is
// added, and what no client of the dialect survives is left out; everything else passes as it came (INF-22, INF-23, INF-25).
package mend
