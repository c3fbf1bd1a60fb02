// Package plugin is the plugin runtime: it loads packs and guests from the program and from a folder, checks them, keeps
// them in sandboxes, replaces them without a gap, and answers what they say about providers, plans and failed answers
// (ABI-1 to ABI-9, PLG-1 to PLG-3). It owns instances, generations, the order of plugins and the question which plugin
// may speak for which provider. Only here is wazero.
//
// A plugin version is loaded to the side; only when everything passed does one pointer move to a new Set, which is what
// requests hold. The version before is closed when the last request that holds its Set is done.
package plugin
