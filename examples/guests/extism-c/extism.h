// extism.h is what a plugin in C needs of Extism and of Weir's host functions (ABI-10), without a C library and without a PDK.
// Include it in one file. A guest exports one function for each operation: int32_t weir_NAME(void), which returns 0.
#pragma once
#include <stddef.h>
#include <stdint.h>
#define WEIR_EXPORT(name) __attribute__((export_name("weir_" #name))) weir_##name
#define EXTISM(name) __attribute__((import_module("extism:host/env"), import_name(#name))) extism_##name
#define WEIR(name) __attribute__((import_module("extism:host/user"), import_name(#name))) host_##name
#define WEIR_JSON(...) #__VA_ARGS__ // JSON as it is, as a C string

typedef uint64_t block; // a handle of bytes in the kernel; 0: none
block EXTISM(alloc)(uint64_t len);
void EXTISM(free)(block);
uint64_t EXTISM(length)(block);
uint32_t EXTISM(load_u8)(uint64_t at);
void EXTISM(store_u8)(uint64_t at, uint32_t byte);
uint64_t EXTISM(load_u64)(uint64_t at);
void EXTISM(store_u64)(uint64_t at, uint64_t eight);
uint64_t EXTISM(input_length)(void);
uint64_t EXTISM(input_load_u64)(uint64_t offset);
uint32_t EXTISM(input_load_u8)(uint64_t offset);
void EXTISM(output_set)(block, uint64_t len);

// What Weir adds. A handle that comes back is 0 for "not found" and negative for an error: -2 is denied.
void WEIR(log)(int32_t level, block line);
int64_t WEIR(now_ms)(void);
int64_t WEIR(random)(int32_t n);
int64_t WEIR(kv_get)(block key);
int32_t WEIR(kv_set)(block key, block value, int64_t ttl_ms);
int64_t WEIR(kv_add)(block key, int64_t delta, int64_t ttl_ms); // INT64_MIN: an error
int64_t WEIR(http_fetch)(block request);
int32_t WEIR(secret_ready)(block name);
int32_t WEIR(metric)(block name, double value);
int32_t WEIR(cancelled)(void);

// block_of copies bytes into a new block.
static __attribute__((noinline)) block block_of(const void *bytes, uint64_t len) {
	block to = extism_alloc(len);
	uint64_t i = 0;
	for (; i + 8 <= len; i += 8) {
		uint64_t eight;
		__builtin_memcpy(&eight, (const char *)bytes + i, 8);
		extism_store_u64(to + i, eight);
	}
	for (; i < len; i++) extism_store_u8(to + i, ((const uint8_t *)bytes)[i]);
	return to;
}
#define BLOCK(text) block_of(text, sizeof(text) - 1)

// input copies the input, as much as fits, and returns its length.
static inline size_t input(char *to, size_t cap) {
	size_t len = (size_t)extism_input_length(), i = 0;
	if (len > cap) len = cap;
	for (; i + 8 <= len; i += 8) {
		uint64_t eight = extism_input_load_u64(i);
		__builtin_memcpy(to + i, &eight, 8);
	}
	for (; i < len; i++) to[i] = (char)extism_input_load_u8(i);
	return len;
}

// answer makes bytes the output.
static inline int32_t answer(const void *bytes, uint64_t len) {
	extism_output_set(block_of(bytes, len), len);
	return 0;
}
