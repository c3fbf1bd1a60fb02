// Package rules is the rule language: what an upstream's failed answer really means, written as data (ABI-2.1). It reads
// the structured error in a body (Read), parses and lints tables (Parse, Lint), compiles the tables of all plugins into
// one matcher (Compile) and runs it on an answer (Set.Match). It does no I/O, keeps no clock and changes no state: a rule
// states, the host applies.
//
// A table is a JSON array of rules. All conditions of a rule hold at once, the values of one condition are alternatives,
// and the first rule that holds is the answer:
//
//	{"id": "acme-quota", "providers": ["acme"], "status": [403], "text_contains": ["quota"],
//	 "then": {"reason": "quota_exhausted", "retry_after": {"from": "text", "match": "in ([0-9]+)s", "unit": "s"}}}
//
// A rule whose then has restate_status, restate_code or keep restates: it corrects a misleading status before anything
// else looks at the answer (RST-2). Any other rule classifies: it gives the verdict. The two are separate tables.
//
// Texts compare in any letter case. They look at the body as sent, at the strings of its JSON decoded, and at the
// message that Read found; regular expressions (RE2) too. Conditions on code and type compare with the structured error.
// Conditions on json look at the body's value, at each item when it is an array, and at each frame when it is a stream
// of events; a null counts as absent. A rule sees only what its plugin's needs declare: so many bytes of each text, and
// those headers (RUL-2).
package rules
