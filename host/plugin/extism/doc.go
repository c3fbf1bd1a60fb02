// Package extism is the second loader: for guests that were written with an Extism PDK (ABI-10). It owns what is particular about
// them: the kernel with its blocks, through which all bytes go, the names and types of what they may import, and the guard
// before each function of the host. The same operations, documents, limits and host functions as for guests of our own ABI are
// the business of package plugin. Only here is the Extism SDK.
//
// # Why there is a guard
//
// The SDK trusts its guests. It gives them functions that write anywhere in the memory of the kernel, whose allocator keeps its
// list of blocks there, unmetered: a guest could make that list a ring, and the host would follow it for ever. And each call
// of the kernel costs the host some ten thousand times what it costs the guest in fuel. So a listener of wazero stands before each
// function that a guest may call. It looks at the clock, keeps the book of blocks, lets a guest write into those only, and takes
// away what a plugin never has: HTTP and variables of the SDK's.
package extism
