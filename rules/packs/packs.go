// Package packs holds the shipped rule packs: what the answers of known providers mean, and the detectors that know no
// provider (generic.yaml), each rule with its evidence. It owns the phrases and codes, and no code that runs them.
package packs

import "embed"

// Files are the packs, one NAME.yaml each. They are plugins of kinds restatement and classifier (ABI-2.3).
//
//go:embed *.yaml
var Files embed.FS
