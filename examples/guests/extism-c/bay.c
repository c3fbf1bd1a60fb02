// A plugin for Extism: Bay answers 500 when the allowance of an account is spent, and 503 while it is busy. The rules say what the
// first one means; the hook counts how often Bay was busy, and lets accounts rest longer each time.
#include "extism.h"

static const char manifest[] = WEIR_JSON({
	"name": "bay-status", "version": "1.0.0", "abi": "1.0", "license": "MIT",
	"summary": "Bay: an allowance that is spent is answered as 500, and rests that grow while it is busy",
	"kinds": ["restatement", "classifier"], "hooks": ["classify"],
	"matches": [{"providers": ["bay", "bay-*"]}],
	"needs": {"error_text": "prefix"},
	"permissions": {"kv": {"bytes": 4096, "reason": "how often in a row it was busy"}},
	"rules": [
		{"id": "allowance-as-500", "status": [500], "text_contains": ["allowance is spent"], "then": {"restate_status": 429, "restate_code": "rate_limit_exceeded"}},
		{"id": "allowance", "status": [429], "text_contains": ["allowance is spent"], "then": {"reason": "quota_exhausted", "scope": "connection", "cooldown": "6h"}}
	],
	"examples": [
		{"name": "the allowance is restated", "op": "restate", "input": {"provider": "bay", "status": 500, "error": {
			"text": "Your allowance is spent"}}, "expect": {"status": 429}},
		{"name": "and is a quota", "op": "classify", "input": {"provider": "bay", "status": 429, "original_status": 500, "error": {
			"text": "Your allowance is spent"}}, "expect": {"reason": "quota_exhausted", "rule": "allowance"}},
		{"name": "busy, without a grant to count", "op": "classify", "input": {"provider": "bay", "status": 503, "error": {"text": "busy"}},
			"expect": {"reason": "overloaded", "cooldown_ms": 2000}},
		{"name": "anything else", "op": "classify", "input": {"provider": "bay", "status": 503, "error": {"text": "no idea"}}, "expect": null}
	]
});

int32_t WEIR_EXPORT(describe)(void) { return answer(manifest, sizeof manifest - 1); }

// has says whether text is somewhere in the input.
static int has(const char *in, size_t len, const char *text) {
	for (size_t i = 0; i < len; i++) {
		size_t k = 0;
		while (text[k] && i + k < len && in[i + k] == text[k]) k++;
		if (!text[k]) return 1;
	}
	return 0;
}

int32_t WEIR_EXPORT(classify)(void) {
	static char in[16 << 10];
	size_t len = input(in, sizeof in);
	if (!has(in, len, "\"status\":503") || !has(in, len, "busy")) return 0; // no opinion
	int64_t times = host_kv_add(BLOCK("busy"), 1, 60000);
	if (times < 1) times = 1; // not granted: as if it were the first time
	if (times > 4) times = 4;
	if (times > 1) host_log(1, BLOCK("busy again"));
	char verdict[] = "{\"reason\":\"overloaded\",\"scope\":\"connection\",\"fallback\":true,\"cooldown_ms\":0000}";
	verdict[sizeof verdict - 6] = (char)('0' + 2 * times);
	return answer(verdict, sizeof verdict - 1);
}
