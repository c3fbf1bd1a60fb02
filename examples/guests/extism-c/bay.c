// A plugin for Extism: Bay answers 500 with "balance" in it when an account has no credit, and 200 with an error inside when it is
// busy. The rules say so; the hook counts how often an account was busy, and makes it rest longer each time.
#include "extism.h"

static const char manifest[] = WEIR_JSON({
	"name": "bay-status", "version": "1.0.0", "abi": "1.0", "license": "MIT",
	"summary": "Bay: the balance answered as 500, and rests that grow while it is busy",
	"kinds": ["restatement", "classifier"], "hooks": ["classify"],
	"matches": [{"providers": ["bay", "bay-*"]}],
	"needs": {"error_text": "prefix"},
	"permissions": {"kv": {"bytes": 4096, "reason": "how often in a row it was busy"}},
	"rules": [
		{"id": "balance-as-500", "status": [500], "text_contains": ["balance is not enough"], "then": {"restate_status": 402, "restate_code": "insufficient_quota"}},
		{"id": "no-credit", "status": [402], "text_contains": ["balance is not enough"], "then": {"reason": "credits_exhausted", "scope": "connection"}}
	],
	"examples": [
		{"name": "the balance is restated", "op": "restate", "input": {"provider": "bay", "status": 500, "error": {
			"text": "Your balance is not enough"}}, "expect": {"status": 402}},
		{"name": "and no credit", "op": "classify", "input": {"provider": "bay", "status": 402, "original_status": 500, "error": {
			"text": "Your balance is not enough"}}, "expect": {"reason": "credits_exhausted", "rule": "no-credit"}},
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
