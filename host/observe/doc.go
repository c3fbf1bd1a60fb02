// Package observe owns what an operator sees of a running host: logs, request ids, metrics and profiles (OBS-2, OBS-4,
// OBS-6). Everything belongs to one host: there is no global registry and no default logger, so that two hosts run in one
// process.
package observe
