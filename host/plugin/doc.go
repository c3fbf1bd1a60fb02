// Package plugin is the plugin runtime: it loads packs and guests from the program and from a folder, checks them, keeps
// them in sandboxes, replaces them without a gap, and answers what they say about providers, plans, requests, streams and
// failed answers (ABI-1 to ABI-11, PLG-1 to PLG-5, PLG-10 to PLG-16). It owns instances, generations, limits, the order of plugins and the
// question which plugin may speak for which provider. Only here is wazero. Guests that were built with an Extism PDK go through
// the package extism below (ABI-10).
//
// A plugin version is loaded to the side; only when everything passed does one pointer move to a new Set, which is what
// requests hold. The version before is closed when the last request that holds its Set is done; after half a minute its guest
// is taken from those that still run.
//
// One name may come from the folder, from the API and from the program; the first of these counts (winners in activate.go). What is
// put through the API is kept by the shelf, and whose bytes may be loaded and what they may do is for the lock and for signatures to say
// (trust). A shadow is a version that judges failed answers after the call, for comparison only (shadow.go).
//
// A call of a guest is a turn: its ward (is the plugin quarantined?), an instance of its pool, fuel into the guest's global,
// the call, and the judgement of how it ended. Fuel stops a guest inside of its own code, the wall clock is looked at between
// host functions, and what breaks the rules costs the plugin this call's opinion, the instance, and in the end its place.
package plugin
