package plugin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/plugin/pack"
)

const hookManifest = `{"name":"acme","version":"1.0.0","kinds":["classifier"],"hooks":["classify"],"matches":[{"providers":["acme"]}]}`

// loadFile loads one file as if it lay in the folder.
func loadFile(t testing.TB, o Options, name string, b []byte) (*version, *Fault) {
	t.Helper()
	v, f := New(o).loader().load(t.Context(), source{origin: OriginFolder, file: name, yaml: isYAML(name), bytes: b})
	if v != nil {
		t.Cleanup(v.release)
	}
	return v, f
}

func yamlPack(body string) []byte { return []byte("name: acme\nversion: 1.0.0\n" + body) }

// Bad input, each with its own step and code and a sentence that names the thing.
func TestBadFiles(t *testing.T) { // PLG-14, PLG-2, ABI-1, ABI-2, ABI-8
	good := module{manifest: hookManifest}.wasm()
	exit := module{manifest: hookManifest, imports: []string{"!wasi_snapshot_preview1.proc_exit"}}
	data := func(s string) []byte {
		b, err := pack.Pack([]byte(s), nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		id, file   string
		bytes      []byte
		step, code string
		says       string
	}{
		{"a good one", "a.wasm", good, "", "", ""},
		{"a good one that imports WASI", "a.wasm", exit.wasm(), "", "", ""},
		{"PLG-14 not WebAssembly", "a.wasm", []byte("#!/bin/sh"), StepPrecheck, CodeNotWasm, "not a WebAssembly module"},
		{"PLG-14 an empty file", "a.wasm", nil, StepPrecheck, CodeNotWasm, "not a WebAssembly module"},
		{"PLG-14 a component", "a.wasm", []byte("\x00asm\x0d\x00\x01\x00rest"), StepPrecheck, CodeComponent, "core module"},
		{"ABI-7 a header only", "a.wasm", good[:8], StepPrecheck, CodeMissingExport, "memory"},
		{"ABI-13 cut off", "a.wasm", good[:len(good)-9], StepPrecheck, CodeMalformed, "damaged"},
		{"PLG-2 too large", "a.wasm", make([]byte, MaxFile+1), StepRead, CodeTooLarge, "33554433"},
		{"ABI-1 no memory", "a.wasm", module{manifest: hookManifest, without: "memory"}.wasm(), StepPrecheck, CodeMissingExport, "memory"},
		{"ABI-1 no weir_abi", "a.wasm", module{manifest: hookManifest, without: "weir_abi"}.wasm(), StepPrecheck, CodeMissingExport, "weir_abi"},
		{"ABI-1 no weir_call", "a.wasm", module{manifest: hookManifest, without: "weir_call"}.wasm(), StepPrecheck, CodeMissingExport, "weir_call"},
		{"ABI-1 weir_call of another type", "a.wasm", module{manifest: hookManifest, mistyped: "weir_call"}.wasm(), StepPrecheck, CodeExportType, "(i32 i32)->(i64)"},
		{"ABI-1 _initialize of another type", "a.wasm", module{manifest: hookManifest, mistyped: "_initialize"}.wasm(), StepPrecheck, CodeExportType, "_initialize"},
		{"PLG-14 too much memory", "a.wasm", module{manifest: hookManifest, pages: 513}.wasm(), StepPrecheck, CodeMemoryLimit, "at most 32"},
		{"ABI-2 memory above its own limit", "a.wasm", module{manifest: strings.Replace(hookManifest, `"hooks"`, `"limits":{"memory_mib":1},"hooks"`, 1), pages: 17}.wasm(), StepValidate, CodeMemoryLimit, "17 pages"},
		{"ABI-7 a table bomb", "a.wasm", module{manifest: hookManifest, table: 10_000_000}.wasm(), StepPrecheck, CodeModuleLimit, "entries"},
		{"ABI-7 too many locals", "a.wasm", module{manifest: hookManifest, locals: 40_000}.wasm(), StepPrecheck, CodeModuleLimit, "locals"},
		{"PLG-14 SCN-19 an import of a later host", "a.wasm", module{manifest: hookManifest, imports: []string{"weir.foo"}}.wasm(), StepPrecheck, CodeUnknownImport, "needs weir.foo, host has ABI 1.0"},
		{"PLG-14 SCN-19 an import of nobody", "a.wasm", module{manifest: hookManifest, imports: []string{"env.abort"}}.wasm(), StepPrecheck, CodeUnknownImport, "env.abort"},
		{"ABI-6 an import of another type", "a.wasm", module{manifest: hookManifest, imports: []string{"weir.now_ms"}}.wasm(), StepPrecheck, CodeUnknownImport, "host has it as ()->(i64)"},
		{"ABI-10 Extism's imports with the raw exports", "a.wasm", module{manifest: hookManifest, imports: []string{"extism:host/env.alloc"}}.wasm(), StepPrecheck, CodeMissingExport, "weir_describe"},
		{"PLG-14 another ABI", "a.wasm", module{manifest: hookManifest, abi: 2}.wasm(), StepInstantiate, CodeUnknownABI, "ABI 2"},
		{"ABI-10 another ABI in the manifest", "a.wasm", module{manifest: strings.Replace(hookManifest, `"version"`, `"abi":"2.0","version"`, 1)}.wasm(), StepValidate, CodeUnknownABI, "2.0"},
		{"ABI-8 _initialize traps", "a.wasm", module{manifest: hookManifest, init: []byte{0x00}}.wasm(), StepInstantiate, CodeStart, "unreachable"},
		{"ABI-2 describe traps", "a.wasm", module{manifest: hookManifest, describe: codeTrap}.wasm(), StepDescribe, CodeDescribe, "trap"},
		{"ABI-2 describe answers nothing", "a.wasm", module{manifest: hookManifest, describe: codeZero}.wasm(), StepDescribe, CodeDescribe, "nothing"},
		{"ABI-2 describe points elsewhere", "a.wasm", module{manifest: hookManifest, describe: place(1<<31, 9)}.wasm(), StepDescribe, CodeDescribe, "outside"},
		{"ABI-8 describe is too long", "a.wasm", module{manifest: hookManifest, describe: place(16, 1<<20+1)}.wasm(), StepDescribe, CodeDescribe, "at most 1048576"},
		{"ABI-1 weir_alloc refuses", "a.wasm", module{manifest: hookManifest, alloc: codeLeave}.wasm(), StepDescribe, CodeDescribe, "weir_alloc"},
		{"ABI-1 weir_alloc points elsewhere", "a.wasm", module{manifest: hookManifest, alloc: codeFar}.wasm(), StepDescribe, CodeDescribe, "outside"},
		{"PLG-14 a manifest that is no JSON", "a.wasm", module{manifest: `{"name":`}.wasm(), StepValidate, CodeManifest, "JSON"},
		{"ABI-2.3 a pack with a bad section", "a.wasm", data(`{"name":"A","version":"1"}`), StepValidate, CodeManifest, "name"},

		{"CFG a YAML fault", "a.yaml", []byte("name: acme\nversion: [1"), StepRead, CodeBadYAML, ""},
		{"ABI-2 a name", "a.yaml", []byte("name: Acme_1\nversion: 1.0.0\n"), StepValidate, CodeManifest, "name"},
		{"ABI-2 a version", "a.yaml", []byte("name: acme\nversion: '1.0'\n"), StepValidate, CodeManifest, "version"},
		{"ABI-2 a kind", "a.yaml", yamlPack("kinds: [wizard]\n"), StepValidate, CodeManifest, "kinds[0]"},
		{"ABI-2.3 hooks in a pack", "a.yaml", yamlPack("kinds: [classifier]\nhooks: [classify]\n"), StepValidate, CodeManifest, "hooks"},
		{"ABI-2 a hook of a later host", "a.yaml", yamlPack("kinds: [executor]\nhooks: [on_failure]\n"), StepValidate, CodeUnsupported, "on_failure"},
		{"ABI-2.1 a mixed rule", "a.yaml", yamlPack("kinds: [restatement, classifier]\nrules:\n- {id: r, status: [403], then: {restate_status: 429, reason: overloaded}}\n"), StepValidate, "rule_mixed", "rules[0]"},
		{"ABI-2.1 a phase", "a.yaml", yamlPack("kinds: [classifier]\nrules:\n- {id: r, phase: guard, status: [403], then: {reason: overloaded}}\n"), StepValidate, "rule_phase_reserved", "rules[0]"},
		{"ABI-2.2 providers need an executor", "a.yaml", yamlPack("kinds: [classifier]\nproviders: [{id: acme}]\n"), StepValidate, CodeManifest, "executor"},
		{"ABI-3 a plan that must be signed", "a.yaml", yamlPack("kinds: [executor]\nplans: [{plan: {url: '{{connection.base_url}}/x', sign: {kind: aws_sigv4}}}]\n"), StepValidate, CodeUnsupported, "sign"},
		{"ABI-3 a plan to a templated host", "a.yaml", yamlPack("kinds: [executor]\nplans: [{plan: {url: 'https://{{model}}.example/x'}}]\n"), StepValidate, CodeManifest, "url"},
		{"ABI-3 a plan beside the base address", "a.yaml", yamlPack("kinds: [executor]\nplans: [{plan: {url: '{{connection.base_url}}.evil.example/x'}}]\n"), StepValidate, CodeManifest, "url"},
		{"ABI-2 limits may only lower", "a.yaml", yamlPack("limits: {memory_mib: 64}\n"), StepValidate, CodeManifest, "limits.memory_mib"},
		{"ABI-2.4 an example that fails", "a.yaml", yamlPack("kinds: [classifier]\nrules:\n- {id: r, status: [403], then: {reason: overloaded}}\nexamples:\n- {op: classify, input: {provider: x, status: 403}, expect: {reason: banned}}\n"), StepExamples, CodeExample, "overloaded"},
	} {
		t.Run(c.id, func(t *testing.T) {
			v, f := loadFile(t, Options{}, c.file, c.bytes)
			if c.code == "" {
				if f != nil {
					t.Fatal(f)
				}
				return
			}
			if f == nil || v != nil {
				t.Fatalf("loaded, want %s", c.code)
			}
			if f.Step != c.step || f.Code != c.code || !strings.Contains(f.Message, c.says) {
				t.Errorf("fault %s/%s %q, want %s/%s with %q", f.Step, f.Code, f.Message, c.step, c.code, c.says)
			}
			if f.At.IsZero() || f.File != c.file {
				t.Errorf("fault without time or file: %+v", f)
			}
			if c.file == "a.yaml" && (f.Line == 0 || f.Column == 0) && f.Step != StepExamples {
				t.Errorf("fault without a place: %+v", f)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) { // PLG-2
	_, f := loadFile(t, Options{}, "a.yaml", []byte(`name: A
version: one
kinds: [executor, wizard]
providers:
  - {id: Bad Id, auth: magic, base_url: "ftp://x/", key_env: [lower]}
  - {id: ok, dialects: {/v1/messages: openai_chat}}
plans:
  - plan: {method: BREW, body: [{op: set, path: x}, {op: clamp, path: y}]}
`))
	if f == nil {
		t.Fatal("loaded")
	}
	var got []string
	for _, p := range f.Problems {
		got = append(got, fmt.Sprintf("%s@%d", p.Field, p.Line))
	}
	for _, want := range []string{
		"name@1", "version@2", "kinds[1]@3", "providers[0].id@5", "providers[0].auth@5", "providers[0].base_url@5", "providers[0].key_env[0]@5",
		`providers[1].dialects["/v1/messages"]@6`, "plans[0].plan.method@8", "plans[0].plan.url@8", "plans[0].plan.body[0].value@8", "plans[0].plan.body[1]@8",
	} {
		if !strings.Contains(strings.Join(got, " ")+" ", want+" ") {
			t.Errorf("no problem %s in %v", want, got)
		}
	}
}

func TestDescribeMustNotChange(t *testing.T) { // ABI-2
	// A manifest whose last blank comes and goes with the clock's last bit.
	blank := hookManifest + " "
	byClock := append(place(manifestAt, uint64(len(blank))), 0x10, 0, 0x42, 1, 0x83, 0x7d) // - (now_ms() & 1)
	_, f := loadFile(t, Options{}, "a.wasm", module{manifest: blank, imports: []string{"#weir.now_ms"}, describe: byClock}.wasm())
	if f == nil || f.Step != StepDescribe || f.Code != CodeDiffers {
		t.Fatalf("fault %v, want %s", f, CodeDiffers)
	}
	v, f := loadFile(t, Options{}, "a.wasm", module{manifest: blank, imports: []string{"#weir.now_ms"}}.wasm())
	if f != nil {
		t.Fatal(f)
	}
	if string(v.raw) != blank || v.loader != loaderRaw {
		t.Errorf("manifest %s by %s", v.raw, v.loader)
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) { // ABI-1
	v, f := loadFile(t, Options{}, "a.yaml", yamlPack("sumary: x\nneeds: {smell: strong}\n"))
	if f != nil {
		t.Fatal(f)
	}
	if len(v.warnings) != 2 || v.warnings[0].Field != "sumary" || v.warnings[0].Line != 3 {
		t.Errorf("warnings %v", v.warnings)
	}
	v, f = loadFile(t, Options{}, "a.yaml", yamlPack("abi: '1.7'\nkinds: [classifier, oracle]\n"))
	if f != nil {
		t.Fatal("ABI-10: a later minor is refused:", f)
	}
	if len(v.warnings) != 2 || len(v.manifest.Kinds) != 1 {
		t.Errorf("ABI-10: kinds %v, warnings %v", v.manifest.Kinds, v.warnings)
	}
}

func TestRequireExamples(t *testing.T) { // ABI-2.4
	rules := yamlPack("kinds: [classifier]\nrules:\n- {id: r, status: [403], then: {reason: overloaded}}\n")
	v, f := loadFile(t, Options{}, "a.yaml", rules)
	if f != nil || len(v.warnings) != 1 || v.warnings[0].Code != CodeNoExamples {
		t.Errorf("without: %v, %+v", f, v)
	}
	if _, f := loadFile(t, Options{RequireExamples: true}, "a.yaml", rules); f == nil || f.Code != CodeNoExamples {
		t.Errorf("with: %v", f)
	}
}
