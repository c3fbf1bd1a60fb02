// Package plugins holds the shipped plugins. It owns their sources and nothing else: each folder is one plugin, a pack
// (plugin.yaml) or a guest (main.go).
package plugins

import "embed"

// Packs are the packs among the shipped plugins, one NAME/plugin.yaml each; they are packed when they are loaded.
//
//go:embed */plugin.yaml
var Packs embed.FS
