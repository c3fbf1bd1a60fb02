// weir.h is the raw ABI of Weir plugins (ABI-1, ABI-6) for C without a C library. Include it in one file.
#pragma once
#include <stddef.h>
#include <stdint.h>
#define WEIR_EXPORT(name) __attribute__((export_name(#name))) name
#define WEIR_IMPORT(name) __attribute__((import_module("weir"), import_name(#name))) weir_##name
#define WEIR_JSON(...) #__VA_ARGS__ // JSON as it is, as a C string

enum { WEIR_DESCRIBE = 1, WEIR_CONFIGURE = 2, WEIR_PLAN = 10, WEIR_ON_REQUEST = 11, WEIR_ON_RESPONSE = 12, WEIR_ON_EVENT = 13,
	WEIR_ON_END = 14, WEIR_RESPOND = 15, WEIR_RESTATE = 20, WEIR_CLASSIFY = 30 };
enum { WEIR_NOT_FOUND = -1, WEIR_DENIED = -2, WEIR_TOO_LARGE = -3, WEIR_INVALID = -4, WEIR_UNAVAILABLE = -5,
	WEIR_CANCELLED = -6 }; // results of the functions below

void WEIR_IMPORT(log)(int32_t level, const void *line, size_t len); // 0 debug, 1 info, 2 warn, 3 error
int64_t WEIR_IMPORT(now_ms)(void);
int32_t WEIR_IMPORT(random)(void *to, size_t len);
int32_t WEIR_IMPORT(kv_get)(const void *key, size_t key_len, void *to, size_t cap);
int32_t WEIR_IMPORT(kv_set)(const void *key, size_t key_len, const void *value, size_t len, int64_t ttl_ms);
int64_t WEIR_IMPORT(kv_add)(const void *key, size_t key_len, int64_t delta, int64_t ttl_ms); // INT64_MIN: an error
int32_t WEIR_IMPORT(http_fetch)(const void *request, size_t len, void *to, size_t cap);
int32_t WEIR_IMPORT(secret_ready)(const void *name, size_t len);
int32_t WEIR_IMPORT(metric)(const void *name, size_t len, double value);
int32_t WEIR_IMPORT(cancelled)(void);

static char weir_input[256 << 10], weir_output[16 << 10];
static size_t weir_used; // of weir_output, or what would have been
int32_t WEIR_EXPORT(weir_abi)(void) { return 1; }
char *WEIR_EXPORT(weir_alloc)(size_t size) { return size <= sizeof weir_input ? weir_input : 0; }

static void weir_put(char c) { if (weir_used++ < sizeof weir_output) weir_output[weir_used - 1] = c; }
static void weir_puts(const char *json) { while (*json) weir_put(*json++); }
static void weir_put_int(uint64_t n) {
	if (n > 9) weir_put_int(n / 10);
	weir_put('0' + n % 10);
}
static uint64_t weir_result(void) { // what was put, for weir_call to return; if it did not fit: no opinion
	uint64_t len = weir_used;
	weir_used = 0;
	return len <= sizeof weir_output ? (uint64_t)(uintptr_t)weir_output << 32 | len : 0;
}

typedef struct { const char *at, *end; } weir_json; // a value in its text; at == end: none. Bad JSON is never read beyond its end
static int weir_parts(char c) { return (uint8_t)c <= ' ' || c == ',' || c == ':'; } // parts one value from the next
static const char *weir_value_end(const char *p, const char *end) {
	for (int depth = 0, quoted = 0; p < end; p++) {
		int opens = *p == '{' || *p == '[', closes = *p == '}' || *p == ']';
		if (*p == '"') quoted = !quoted;
		else if (quoted) p += *p == '\\' && p + 1 < end;
		else if (depth <= 0 && (closes || weir_parts(*p))) return p;
		else depth += opens - closes;
	}
	return end;
}
static weir_json weir_take(weir_json *in) { // takes the next value off in
	while (in->at < in->end && weir_parts(*in->at)) in->at++;
	weir_json v = {in->at, weir_value_end(in->at, in->end)};
	in->at = v.end;
	return v;
}
static weir_json weir_inside(weir_json v) { // what an object or array holds, for weir_take; an object: name, value, name, ...
	v.at = v.at < v.end && (*v.at == '{' || *v.at == '[') ? v.at + 1 : v.end;
	return v;
}
static weir_json weir_get(weir_json object, const char *name) { // the member of that name
	for (weir_json in = weir_inside(object), key; key = weir_take(&in), key.at < key.end; weir_take(&in)) {
		const char *k = key.at + 1, *n = name;
		while (*n && k < key.end && *k == *n) k++, n++;
		if (!*n && k < key.end && *k == '"') return weir_take(&in);
	}
	return (weir_json){0, 0};
}
static int64_t weir_int(weir_json v, int64_t none) { // a whole number from 0, or none
	int64_t n = 0;
	const char *p = v.at;
	for (; p < v.end && *p >= '0' && *p <= '9' && n < INT64_MAX / 20; p++) n = n * 10 + *p - '0';
	return p > v.at && p == v.end ? n : none;
}
