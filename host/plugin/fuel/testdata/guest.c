// A guest on the raw ABI (ABI-1) without a C library, for the tests of the rewriter: each op has another shape of code.
//
// Built with Debian clang 14.0.6 and LLD 14.0.6:
//
//	clang --target=wasm32 -O2 -mbulk-memory -mmutable-globals -msign-ext -mnontrapping-fptoint -nostdlib -ffreestanding \
//	  -Wl,--no-entry -Wl,--strip-debug -Wl,-z,stack-size=16384 -Wl,--initial-memory=131072 \
//	  -o guest_c.wasm guest.c
#include <stddef.h>
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(name)))

static uint8_t input[65536], output[4096];

EXPORT("weir_abi") int32_t weir_abi(void) { return 1; }

EXPORT("weir_alloc") uint8_t *weir_alloc(uint32_t size) { return size <= sizeof input ? input : 0; }

static uint64_t answer(uint32_t length) { return (uint64_t)(uintptr_t)output << 32 | length; }

static uint64_t number(uint64_t v) {
	char digits[20];
	uint32_t n = 0, k = 0;
	do digits[n++] = '0' + v % 10; while (v /= 10);
	while (n) output[k++] = digits[--n];
	return answer(k);
}

// scan walks over JSON: it counts the values and finds the deepest nesting.
static uint64_t scan(uint32_t n) {
	uint32_t values = 0, depth = 0, deepest = 0;
	for (uint32_t i = 0; i < n; i++) {
		switch (input[i]) {
		case '"':
			for (i++; i < n && input[i] != '"'; i++) if (input[i] == '\\') i++;
			values++;
			break;
		case '{': case '[':
			if (++depth > deepest) deepest = depth;
			break;
		case '}': case ']':
			depth--;
			values++;
			break;
		case 't': case 'f': case 'n':
			while (i + 1 < n && input[i + 1] >= 'a' && input[i + 1] <= 'z') i++;
			values++;
			break;
		case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
			while (i + 1 < n && ((input[i + 1] >= '0' && input[i + 1] <= '9') || input[i + 1] == '.')) i++;
			values++;
			break;
		}
	}
	return number((uint64_t)deepest << 32 | values);
}

static uint64_t echo(uint32_t n) {
	if (n > sizeof output) n = sizeof output;
	__builtin_memcpy(output, input, n);
	return answer(n);
}

static uint32_t fib(uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// sort orders the input bytes with a heap, then sums what came out.
static uint64_t sort(uint32_t n) {
	for (uint32_t end = n, start = n / 2; end > 1;) {
		if (start) start--;
		else {
			end--;
			uint8_t t = input[0];
			input[0] = input[end];
			input[end] = t;
		}
		for (uint32_t at = start, child; (child = 2 * at + 1) < end; at = child) {
			if (child + 1 < end && input[child + 1] > input[child]) child++;
			if (input[at] >= input[child]) break;
			uint8_t t = input[at];
			input[at] = input[child];
			input[child] = t;
		}
	}
	uint64_t sum = 14695981039346656037u;
	for (uint32_t i = 0; i < n; i++) sum = (sum ^ input[i]) * 1099511628211u;
	return number(sum);
}

static int64_t plus(int64_t a, int64_t b) { return a + b; }
static int64_t minus(int64_t a, int64_t b) { return a - b; }
static int64_t times(int64_t a, int64_t b) { return a * b; }
static int64_t (*const operations[])(int64_t, int64_t) = {plus, minus, times};

static uint64_t indirect(uint32_t n) {
	int64_t v = 1;
	for (uint32_t i = 0; i < n; i++) v = operations[input[i] % 3](v, i + 1);
	return number((uint64_t)v);
}

static uint64_t floats(uint32_t n) {
	double v = 0.5;
	for (uint32_t i = 0; i < n; i++) v = v * 3.7 * (1 - v) + input[i] * 1e-9;
	return number((uint64_t)(v * 1e15) + (uint64_t)(int64_t)(float)v);
}

// grow asks for pages one at a time and writes to each.
static uint64_t grow(uint32_t n) {
	uint32_t got = 0;
	for (; got < n % 16; got++) {
		size_t page = __builtin_wasm_memory_grow(0, 1);
		if (page == (size_t)-1) break;
		__builtin_memset((void *)(page << 16), 7, 65536);
	}
	return number((uint64_t)__builtin_wasm_memory_size(0) << 8 | got);
}

static volatile uint32_t sink;
static uint32_t deep(uint32_t n) { sink = n; return deep(n + 1) + sink; }

EXPORT("weir_call") uint64_t weir_call(int32_t op, uint32_t n) {
	switch (op) {
	case 100: return scan(n);
	case 101: return echo(n);
	case 102: return number(fib(n % 24));
	case 103: return sort(n);
	case 104: return indirect(n);
	case 105: return floats(n);
	case 106: return grow(n);
	case 107: for (;;) sink++;
	case 108: return number(deep(n));
	case 109: for (;;) __builtin_memset(input, (int)sink++, sizeof input);
	case 110: __builtin_trap();
	}
	return 0;
}
