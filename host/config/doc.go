// Package config owns the configuration file and what flags and environment add to it: its schema, its faults with file,
// line and column, and the precedence of CFG-6. It hands objects to the catalogue and options to the host, and runs nothing.
package config
