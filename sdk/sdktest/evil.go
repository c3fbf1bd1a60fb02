package sdktest

import (
	"cmp"
	"slices"

	"github.com/weirgate/weir/sdk/wire"
)

// EvilProvider is the provider that the evil executors describe; the evil classifiers speak for every provider.
const EvilProvider = "evil"

// EvilGuest is a guest that breaks one rule of the ABI: what a host must survive (ABI-8, ABI-13).
type EvilGuest struct {
	Name string
	Wasm []byte

	// LoadCodes: a host must refuse the file, with one of these codes (PLG-14). Empty: it loads.
	LoadCodes []string

	// Op is the operation in which a loaded guest breaks a rule, and Violations the rows of ABI-8 that a host may count it
	// as: fuel, trap, out_of_memory, garbage, output_too_large or exit. Empty: it is no violation, only a nuisance.
	Op         wire.Op
	Violations []string
}

// The rows of ABI-8, as counters name them.
const (
	violationFuel    = "fuel"
	violationTrap    = "trap"
	violationMemory  = "out_of_memory"
	violationGarbage = "garbage"
	violationOutput  = "output_too_large"
	violationExit    = "exit"
)

// Evil returns every evil guest, each a module of its own with a name of its own. The bytes are fresh.
func Evil() []EvilGuest {
	return slices.Concat(badFiles(), badDeclarations(), badIndexes(), badStarts(), badDescriptions(), badCalls(), badAnswers(), badExecutors())
}

// EvilManifest is the manifest that an evil classifier answers describe with.
func EvilManifest(name string) string {
	return `{"name":"evil-` + name + `","version":"1.0.0","kinds":["classifier"],"hooks":["classify"],"limits":{"memory_mib":4}}`
}

// evil is a classifier made of m.
func evil(name string, m module) EvilGuest {
	m.manifest = cmp.Or(m.manifest, EvilManifest(name))
	return EvilGuest{Name: name, Wasm: m.wasm(), Op: wire.OpClassify}
}

func (e EvilGuest) refused(codes ...string) EvilGuest { e.Op, e.LoadCodes = 0, codes; return e }

func (e EvilGuest) violates(kinds ...string) EvilGuest { e.Violations = kinds; return e }

func bytesOf(name string, wasm []byte) EvilGuest { return EvilGuest{Name: name, Wasm: wasm} }

// The codes that more than one bomb is refused with: a host may find it by its shape, or by what it would cost.
const (
	codeLimit     = "module_limit"
	codeMalformed = "module_malformed"
	codeMissing   = "missing_export"
	codeUnknown   = "unknown_import"
	codeStart     = "start_failed"
	codeDescribe  = "describe_failed"
)

// badFiles are no modules, or not whole ones.
func badFiles() []EvilGuest {
	good := (&module{manifest: EvilManifest("good")}).wasm()
	return []EvilGuest{
		bytesOf("empty", nil).refused("not_wasm"),
		bytesOf("not-wasm", []byte("#!/bin/sh\nexit 0\n")).refused("not_wasm"),
		bytesOf("component", append([]byte{0, 'a', 's', 'm', 13, 0, 1, 0}, good[8:]...)).refused("component"),
		bytesOf("header-only", good[:8]).refused(codeMissing),
		bytesOf("truncated", good[:len(good)-9]).refused("truncated", codeMalformed),
		bytesOf("truncated-number", append(slices.Clone(good), 0, 0xff)).refused("truncated", "number_invalid", codeMalformed),
		bytesOf("sections-out-of-order", section(slices.Clone(good), 1, vector(types...))).refused("section_order", codeMalformed),
	}
}

// badDeclarations cost much by what they declare (ABI-7).
func badDeclarations() []EvilGuest {
	return []EvilGuest{
		evil("table-bomb", module{tables: []uint64{134_000_000}}).refused("table_too_large", codeLimit),
		evil("many-tables", module{tables: slices.Repeat([]uint64{1_000_000}, 100)}).refused("too_many_tables", "table_too_large", codeLimit),
		evil("memory-bomb", module{pages: 65_536}).refused("memory_too_large", "memory_limit", codeMalformed),
		evil("memory-above-the-limit", module{pages: 513}).refused("memory_too_large", "memory_limit"),
		evil("two-memories", module{memory2: true}).refused("too_many_memories", codeLimit),
		evil("function-bomb", module{more: slices.Repeat([][]byte{{}}, 50_000)}).refused("too_many_functions", codeLimit),
		evil("if-bomb", module{init: repeat("\x41\x00\x04\x40\x0b", 16_000)}).refused("body_too_large", "body_too_complex", codeLimit),
		evil("nesting-bomb", module{init: slices.Concat(repeat("\x02\x40", 10_000), repeat("\x0b", 10_000))}).refused("nesting_too_deep", codeLimit),
		evil("locals-bomb", module{locals: 40_000}).refused("too_many_locals", codeLimit),
		evil("no-memory", module{without: "memory"}).refused(codeMissing),
		evil("no-call", module{without: "weir_call"}).refused(codeMissing),
		evil("call-of-another-type", module{mistyped: "weir_call"}).refused("export_type"),
		evil("initialize-of-another-type", module{mistyped: "_initialize"}).refused("export_type"),
		evil("needs-a-later-host", module{imports: []imported{{"weir", "foo", typeNothing}}}).refused(codeUnknown),
		evil("needs-nobody-knows-what", module{imports: []imported{{"env", "abort", typeNothing}}}).refused(codeUnknown),
		evil("log-of-another-type", module{imports: []imported{{"weir", "log", typeNothing}}}).refused(codeUnknown),
		evil("simd", module{init: slices.Concat([]byte{0xfd, 0x0c}, make([]byte, 16), []byte{0x1a})}).refused("simd_unsupported", "compile_failed"),
	}
}

// badIndexes name what is not there. A rewriter that appends a global or a function would put it there: the guest refuels
// itself (ABI-7, step 3).
func badIndexes() []EvilGuest {
	refuel := func(global byte) []byte { // fuel = max; forever
		return slices.Concat([]byte{0x03, 0x40, 0x42}, sleb(1<<62), []byte{0x24, global, 0x0c, 0, 0x0b, 0x42, 0})
	}
	codes := []string{"index_out_of_range", codeMalformed, "compile_failed"}
	return []EvilGuest{
		evil("refuels-by-index", module{call: refuel(0)}).refused(codes...),
		evil("refuels-by-index-after-its-own", module{globals: 3, call: refuel(3)}).refused(codes...),
		evil("reads-fuel-by-index", module{call: []byte{0x23, 0}}).refused(codes...),
		evil("exports-fuel-by-index", module{globals: 1, alias: []byte{3, 1}, aliasAs: "counter"}).refused(codes...),
		evil("claims-the-name-of-fuel", module{globals: 1, alias: []byte{3, 0}, aliasAs: "weir_fuel"}).refused("fuel_exported"),
		evil("calls-by-index", module{call: []byte{0x10, 4, 0x42, 0}}).refused(codes...),
		evil("exports-a-function-by-index", module{alias: []byte{0, 4}, aliasAs: "more"}).refused(codes...),
	}
}

// Code of what guests do.
var (
	spin     = []byte{0x03, 0x40, 0x0c, 0, 0x0b}                                                      // loop br 0 end
	trap     = []byte{0x00}                                                                           // unreachable
	nothing  = []byte{0x42, 0}                                                                        // no opinion
	eat      = []byte{0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x00}            // a page more until refused, then trap
	hoard    = []byte{0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b}                  // a page more until refused
	fill     = []byte{0x03, 0x40, 0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 0x10, 0xfc, 11, 0, 12, 0, 0x0b} // fill 256 KiB for ever
	divide   = []byte{0x41, 1, 0x41, 0, 0x6d, 0x1a}                                                   // 1 / 0
	farRead  = []byte{0x41, 0x7f, 0x28, 2, 0, 0x1a}                                                   // load at 2^32-1
	exit     = []byte{0x41, 3, 0x10, 0}                                                               // call import 0 with 3
	procExit = []imported{{"wasi_snapshot_preview1", "proc_exit", typeTakesI32}}
)

func then(parts ...[]byte) []byte { return slices.Concat(parts...) }

// badStarts do not come up.
func badStarts() []EvilGuest {
	return []EvilGuest{
		evil("speaks-abi-2", module{abi: 2}).refused("unknown_abi"),
		evil("spins-at-start", module{init: spin}).refused(codeStart),
		evil("spins-in-the-start-section", module{init: spin, start: true}).refused(codeStart),
		evil("traps-at-start", module{init: trap}).refused(codeStart),
		evil("exits-at-start", module{init: exit, imports: procExit}).refused(codeStart),
		evil("eats-memory-at-start", module{init: eat}).refused(codeStart),
	}
}

// badDescriptions break the rules of ABI-2.
func badDescriptions() []EvilGuest {
	random := []imported{{"weir", "random", typeRandom}}
	changing := EvilManifest("changes-its-describe")
	end := textAt + int32(len(changing))
	change := then(i32const(end), []byte{0x41, 32, 0x10, 0, 0x1a}) // 32 random bytes behind the manifest, each made a blank or a line feed
	for i := range int32(32) {
		change = then(change, i32const(end+i), i32const(end+i), []byte{0x2d, 0, 0, 0x41, 1, 0x71, 0x41, 22, 0x6c, 0x41, 10, 0x6a, 0x3a, 0, 0})
	}
	change = then(change, place(textAt, uint64(len(changing))+32))
	failing := `{"name":"evil-fails-its-example","version":"1.0.0","kinds":["classifier"],"hooks":["classify"],` +
		`"examples":[{"op":"classify","input":{"status":500},"expect":{"reason":"overloaded"}}]}`
	return []EvilGuest{
		evil("changes-its-describe", module{imports: random, describe: change, answer: string(repeat(" ", 32))}).refused("describe_differs"),
		evil("spins-in-describe", module{describe: then(spin, nothing)}).refused(codeDescribe),
		evil("traps-in-describe", module{describe: then(trap, nothing)}).refused(codeDescribe),
		evil("describes-nothing", module{describe: nothing}).refused(codeDescribe),
		evil("describes-a-gigabyte", module{describe: place(textAt, 1<<30)}).refused(codeDescribe),
		evil("describes-what-is-not-there", module{describe: place(1<<31, 100)}).refused(codeDescribe),
		evil("describes-garbage", module{manifest: "\xff\xfe hello"}).refused("manifest_invalid", "json_invalid"),
		evil("describes-a-list", module{manifest: `["evil"]`}).refused("manifest_invalid"),
		evil("describes-unknown-words", module{manifest: `{"name":"evil-words","version":"1.0.0","kinds":["oracle"]}`}).refused("manifest_invalid"),
		evil("refuses-input", module{alloc: []byte{0x41, 0}}).refused(codeDescribe),
		evil("places-input-outside", module{alloc: i32const(1 << 30)}).refused(codeDescribe),
		evil("spins-in-alloc", module{alloc: then(spin, []byte{0x41, 0})}).refused(codeDescribe),
		evil("fails-its-example", module{manifest: failing}).refused("example_failed"),
	}
}

// badCalls break the rules while they run.
func badCalls() []EvilGuest {
	recurse := func(index byte) []byte { return []byte{0x10, index} }
	log := []imported{{"weir", "log", typeLog}}
	random := []imported{{"weir", "random", typeRandom}}
	line := slices.Concat([]byte{0x41, 1}, i32const(textAt), []byte{0x41, 4, 0x10, 0})
	flood := slices.Concat([]byte{0x03, 0x40}, line, // until the local, from 1,000 down, is 0
		[]byte{0x20, 2, 0x41, 1, 0x6a, 0x22, 2}, i32const(1000), []byte{0x48, 0x0d, 0, 0x0b, 0x42, 0})
	return []EvilGuest{
		evil("spins", module{call: then(spin, nothing)}).violates(violationFuel),
		evil("recurses", module{call: then(recurse(4), nothing), more: [][]byte{recurse(4)}}).violates(violationFuel, violationTrap),
		evil("fills-memory-for-ever", module{call: then(fill, nothing)}).violates(violationFuel),
		evil("traps", module{call: then(trap, nothing)}).violates(violationTrap),
		evil("divides-by-zero", module{call: then(divide, nothing)}).violates(violationTrap),
		evil("reads-outside", module{call: then(farRead, nothing)}).violates(violationTrap),
		evil("eats-memory", module{call: then(eat, nothing)}).violates(violationMemory),
		evil("hoards-memory", module{call: then(hoard, nothing)}),
		evil("exits", module{call: then(exit, nothing), imports: procExit}).violates(violationExit),
		evil("logs-from-outside", module{call: then([]byte{0x41, 1}, i32const(1<<30), []byte{0x41, 9, 0x10, 0}, nothing), imports: log}).violates(violationTrap),
		evil("has-random-written-outside", module{call: then(i32const(1<<30), []byte{0x41, 9, 0x10, 0, 0x1a}, nothing), imports: random}).violates(violationTrap),
		evil("floods-the-log", module{call: flood, imports: log, locals: 1}),
	}
}

// badAnswers lie about what they answer, or answer garbage.
func badAnswers() []EvilGuest {
	list := []EvilGuest{
		evil("answers-a-gigabyte", module{call: place(textAt, 1<<30)}).violates(violationOutput),
		evil("answers-a-byte-too-much", module{call: place(textAt, 64<<10+1)}).violates(violationOutput),
		evil("answers-from-outside", module{call: place(1<<31, 100)}).violates(violationGarbage),
		evil("answers-over-the-edge", module{call: place(pages<<16-4, 100)}).violates(violationGarbage),
		evil("answers-around-the-end", module{call: place(1<<32-16, 100)}).violates(violationGarbage),
		evil("answers-negative", module{call: i64const(-1)}).violates(violationOutput, violationGarbage),
	}
	for _, a := range []struct{ name, text string }{
		{"not-json", "hello"}, {"half-a-document", `{"reason":"overl`}, {"bytes", "\xff\xfe\x00\x01"}, {"a-list", `["overloaded"]`},
		{"a-wrong-type", `{"reason":7}`}, {"an-unknown-word", `{"reason":"bogus"}`}, {"an-unknown-scope", `{"reason":"overloaded","scope":"planet"}`},
		{"a-deep-document", `{"reason":` + string(repeat("[", 20_000))}, {"a-number-without-end", `{"reason":"overloaded","retry_after_ms":1e999}`},
	} {
		list = append(list, evil("answers-"+a.name, module{answer: a.text}).violates(violationGarbage))
	}
	return list
}

// badExecutors break the rules in the operations of an executor. They describe EvilProvider.
func badExecutors() []EvilGuest {
	const models = `"providers":[{"id":"` + EvilProvider + `","auth":"local","base_url":"https://api.evil.example","models":["m"],"dialects":{"/v1/chat/completions":"openai_chat"}}]`
	executor := func(name string, op wire.Op, plan string, m module) EvilGuest {
		m.manifest = `{"name":"evil-` + name + `","version":"1.0.0","kinds":["executor"],"limits":{"memory_mib":4},"hooks":["` + op.String() + `"],` + models
		if plan != "" {
			m.manifest += `,"plans":[{"plan":` + plan + `}]`
		}
		m.manifest += `}`
		e := evil(name, m)
		e.Op = op
		return e
	}
	const (
		none   = `{"upstream":"none","dialect":"openai_chat"}`
		asked  = `{"url":"{{connection.base_url}}/x","dialect":"openai_chat","hooks":["on_request"]}`
		events = `{"url":"{{connection.base_url}}/x","dialect":"openai_chat","response":{"events":"hook"}}`
	)
	plan := func(name, answer string) EvilGuest {
		return executor("plans-"+name, wire.OpPlan, "", module{answer: answer}).violates(violationGarbage)
	}
	return []EvilGuest{
		executor("spins-in-plan", wire.OpPlan, "", module{call: then(spin, nothing)}).violates(violationFuel),
		plan("garbage", "hello"),
		plan("another-host", `{"url":"https://elsewhere.example/v1","headers":{"authorization":"Bearer {{secret.api_key}}"}}`),
		plan("a-host-by-template", `{"url":"https://{{secret.api_key}}.evil.example/v1"}`),
		plan("a-broken-header", `{"url":"{{connection.base_url}}/x","headers":{"x-a":"b\r\nx-c: d"}}`),
		plan("an-unknown-edit", `{"url":"{{connection.base_url}}/x","body":[{"op":"explode","path":"a"}]}`),
		executor("spins-in-respond", wire.OpRespond, none, module{call: then(spin, nothing)}).violates(violationFuel),
		executor("responds-garbage", wire.OpRespond, none, module{answer: "hello"}).violates(violationGarbage),
		executor("responds-without-a-status", wire.OpRespond, none, module{answer: `{"status":7}`}).violates(violationGarbage),
		executor("responds-too-much", wire.OpRespond, none, module{call: place(textAt, 256<<10+1)}).violates(violationOutput),
		executor("spins-in-on-request", wire.OpRequest, asked, module{call: then(spin, nothing)}).violates(violationFuel),
		executor("edits-garbage", wire.OpRequest, asked, module{answer: `{"body":7}`}).violates(violationGarbage),
		executor("spins-in-on-event", wire.OpEvent, events, module{call: then(spin, nothing)}).violates(violationFuel),
		executor("traps-in-on-event", wire.OpEvent, events, module{call: then(trap, nothing)}).violates(violationTrap),
		executor("answers-events-with-garbage", wire.OpEvent, events, module{answer: "\x09"}).violates(violationGarbage),
		executor("replaces-by-a-torn-event", wire.OpEvent, events, module{answer: "\x02\xff\xffab"}).violates(violationGarbage),
	}
}
