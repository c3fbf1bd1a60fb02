// Package catalog owns the immutable snapshot of providers, connections, models, combos, keys and settings that a request
// works with, and the pointer to the present one. It does no I/O: sources are handed in, and Build reports every problem.
package catalog
