// Package packs holds the shipped rule packs: what the answers of known providers mean, and the detectors that know no
// provider (generic.yaml), each rule with its evidence. It owns the phrases and codes, and no code that runs them.
package packs

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml */*.yaml
var sources embed.FS

// Files are the packs, one NAME.yaml each. They are plugins of kinds restatement and classifier (ABI-2.3). A pack that is
// too long for one file is a folder NAME of parts, which follow each other by name as if they were one text. Safe for
// concurrent use.
var Files fs.FS = folder{sources}
