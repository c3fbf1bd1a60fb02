// A guest of Extism that misbehaves as the first letter of the error's text says. bad.wasm is built from it:
//	clang --target=wasm32 -mcpu=mvp -mbulk-memory -std=c11 -O2 -ffreestanding -nostdlib -Wl,--no-entry -Wl,--strip-debug \
//	      -I../../../../examples/guests/extism-c -o bad.wasm bad.c
#include "extism.h"

void EXTISM(input_set)(uint64_t at, uint64_t len);
uint64_t EXTISM(input_offset)(void);
void EXTISM(error_set)(block);
void EXTISM(reset)(void);
void EXTISM(log_info)(block);
void EXTISM(log_error)(block);
uint64_t EXTISM(config_get)(block);
uint64_t EXTISM(var_get)(block);
void EXTISM(var_set)(block name, block value);
uint64_t EXTISM(http_request)(block request, block body);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_exit"))) void proc_exit(int32_t);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write"))) int32_t fd_write(int32_t, const void *, uint32_t, void *);

static const char manifest[] = WEIR_JSON({
	"name": "bad-extism", "version": "1.0.0", "abi": "1.0", "kinds": ["classifier", "executor"], "hooks": ["classify"],
	"matches": [{"providers": ["acme"]}], "needs": {"error_text": "prefix"},
	"permissions": {"kv": {"bytes": 65536}, "http": {"hosts": ["api.acme.example"]}, "secrets": [{"name": "token"}]}
});
static int started;

__attribute__((export_name("_initialize"))) void initialize(void) { started = 1; }
int32_t WEIR_EXPORT(describe)(void) { return started ? answer(manifest, sizeof manifest - 1) : 0; }

// An operation that is not offered, exported all the same: it would run for ever.
int32_t WEIR_EXPORT(on_event)(void) { for (volatile int i = 0;; i++) { } }

static char out[512];
static size_t used;
static void put(const char *text) { while (*text && used < sizeof out) out[used++] = *text++; }
static void put_int(int64_t n) {
	if (n < 0) put("-"), n = -n;
	if (n > 9) put_int(n / 10);
	char digit[2] = {(char)('0' + n % 10), 0};
	put(digit);
}
// says is a verdict whose message is a number, or that with the bytes of a block.
static int32_t says(int64_t n, block bytes) {
	used = 0;
	put("{\"reason\":\"overloaded\",\"scope\":\"connection\",\"fallback\":true,\"message\":\"");
	put_int(n);
	for (uint64_t i = 0; bytes && i < extism_length(bytes); i++) {
		char c[2] = {(char)extism_load_u8(bytes + i), 0};
		put(c[0] < ' ' || c[0] == '"' || c[0] == '\\' ? "?" : c);
	}
	put("\"}");
	return answer(out, used);
}

int32_t WEIR_EXPORT(plan)(void) {
	static char in[4096];
	size_t len = input(in, sizeof in);
	(void)len;
	int64_t got = host_http_fetch(BLOCK("{\"method\":\"GET\",\"url\":\"https://api.acme.example/quota\"}"));
	int64_t other = host_http_fetch(BLOCK("{\"method\":\"GET\",\"url\":\"https://elsewhere.example/\"}"));
	used = 0;
	put("{\"error\":{\"code\":\"unsupported\",\"message\":\"got ");
	put_int(got > 0 ? (int64_t)extism_length((block)got) : got);
	put(" and ");
	put_int(other);
	put("\"}}");
	return answer(out, used);
}

int32_t WEIR_EXPORT(classify)(void) {
	static char in[64 << 10];
	size_t len = input(in, sizeof in), i = 0;
	while (i + 8 < len && !(in[i] == '"' && in[i + 1] == 't' && in[i + 4] == 't' && in[i + 5] == '"' && in[i + 6] == ':')) i++; // "text":
	switch (in[i + 8]) {
	case 's': for (volatile int n = 0;; n++) { }
	case 't': __builtin_trap();
	case 'g': return answer("not JSON", 8);
	case 'z': return answer("{\"reason\":\"no such reason\"}", 27);
	case 'o': extism_output_set(extism_alloc(70000), 70000); return 0;
	case 'p': extism_output_set(1 << 20, 100); return 0; // no block of its own
	case 'm': while (__builtin_wasm_memory_grow(0, 1) != (size_t)-1) { } __builtin_trap();
	case 'M': for (;;) if (!extism_alloc(1 << 20)) __builtin_trap();
	case 'a': return says((int64_t)extism_alloc(1ULL << 48), 0);
	case 'x': proc_exit(3); return 0;
	case 'y': proc_exit(0); return 0;
	case 'h': extism_http_request(BLOCK("{\"url\":\"https://api.acme.example/\"}"), 0); return 0;
	case 'v': extism_var_set(BLOCK("name"), BLOCK("value")); return 0;
	case 'V': extism_var_get(BLOCK("name")); return 0;
	case 'c': for (uint64_t at = 0; at < 4096; at += 8) extism_store_u64(at, ~0ULL); extism_alloc(64); return 0; // the kernel's own
	case 'C': { block b = extism_alloc(16); extism_store_u64(b + 12, ~0ULL); return 0; } // over the end
	case 'F': { block b = BLOCK("a line"); extism_log_info(b); extism_store_u8(b, 1); return 0; } // after it was freed
	case 'k': for (;;) extism_input_load_u8(0);
	case 'b': for (;;) extism_alloc(1);
	case 'e': extism_error_set(BLOCK("my own words")); return 1;
	case 'r': return says((int64_t)extism_length((block)host_random(16)), 0);
	case 'R': return says(host_random(300), 0);
	case 'l': extism_log_info(BLOCK("by the PDK")); extism_log_error(BLOCK("badly")); host_log(2, BLOCK("by the host")); return 0;
	case 'L': host_log(1, 12345); return 0; // no block
	case 'K': {
		int64_t missing = host_kv_get(BLOCK("no")), set = host_kv_set(BLOCK("key"), BLOCK("value"), 0);
		int64_t got = host_kv_get(BLOCK("key"));
		return says(missing * 10 + set, got > 0 ? (block)got : 0);
	}
	case 'E': {
		host_kv_set(BLOCK("empty"), extism_input_offset(), 0);
		block b = BLOCK("x");
		extism_free(b);
		return says(host_kv_set(BLOCK("empty"), 0, 0), 0);
	}
	case '+': return says(host_kv_add(BLOCK("n"), 5, 0), 0);
	case 'S': return says(host_secret_ready(BLOCK("token")) * 10 + host_secret_ready(BLOCK("other")), 0);
	case '#': return says(host_metric(BLOCK("seen"), 2) * 10 + host_metric(BLOCK("b d"), 1), 0);
	case 'n': return says(host_now_ms(), 0);
	case 'q': return says(host_cancelled(), 0);
	case 'f': return says(host_http_fetch(BLOCK("{\"method\":\"GET\",\"url\":\"https://api.acme.example/\"}")), 0);
	case 'w': {
		static const char text[] = "said on stderr";
		struct { const char *at; uint32_t len; } list = {text, sizeof text - 1};
		uint32_t n;
		fd_write(2, &list, 1, &n);
		__builtin_trap();
	}
	case 'W': fd_write(2, 0, 1 << 20, 0); return 0;
	case 'd': extism_reset(); return says(1, 0);
	case 'G': return says((int64_t)extism_config_get(BLOCK("name")), 0);
	case '0': return 0;
	}
	return says(7, 0);
}
