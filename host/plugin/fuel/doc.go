// Package fuel makes a WebAssembly guest stop by itself. It owns the check of a module before anything of it is compiled and
// the rewriting that meters it (ABI-7, steps 2 and 3), for guests of our own ABI and for those of Extism (ABI-10).
//
// The check is complete: a module that passes it is valid by the rules of WebAssembly 2.0 without SIMD, keeps the limits of
// ABI-7, and names nothing beyond what it declares. The last point is what metering stands on. The rewriter appends a global
// (and functions, for Extism) after those of the guest, so an index that pointed behind the end of the original would point
// at them, and a guest could refuel itself.
//
// # What costs fuel
//
//	entering a function                    1
//	each pass through the head of a loop   1
//	128 simple instructions in a row       1
//	memory.copy, memory.fill, memory.init  length / 64
//	table.copy, table.fill, table.init     entries / 64
//	memory.grow                            1,000 for each page asked for
//	table.grow                             entries asked for / 8 (about 1,000 for a page of 8,192 entries)
//
// A row is the longest way through the code since something was charged. A load or store counts as 4 simple instructions, a
// division as 16, a bulk operation as 32, and what may lead to the host (a call of an import, an indirect call, a growth) as 64:
// else a loop of 64 KiB would cost no more than a small one, and a guest could spin for minutes. What is asked for is paid before it is done, so a guest
// also pays for a growth that is refused. Counts are unsigned and the sum is 64 bits wide: no length becomes a refund.
// A guest whose fuel falls below zero ends in the trap "unreachable"; the exported global then tells that trap from others.
//
// # What is refused besides
//
// The limits of ABI-7 bound a file, not what a few of its bytes may cost. So there are bounds on the totals of types, locals,
// globals, entries and segments (too_many_items and the code of the thing), and on the control flow of one body, the values
// that it passes around and the locals that it joins (body_too_complex): 64 KiB of empty loops took wazero 16 s plain and
// four minutes metered, 12 KB of nested loops over a thousand locals 12 s. What is accepted stays near a second; the largest
// bodies of Go, Rust and C guests come to a third of the bounds.
//
// A row of blocks that opens right before the br_table which chooses among them counts as one level of nesting: it is how
// WebAssembly writes a switch, and how Go writes every function.
//
// # What else changes
//
// A table gets a maximum of 65,536 entries if it had a higher one or none, and custom sections are dropped, except
// for the names of functions, which a stack trace needs. (Line tables would be wrong: code moves.)
package fuel
