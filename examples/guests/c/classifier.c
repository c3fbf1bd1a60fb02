// A classifier on the raw ABI. Acme refuses with all of its quota windows at once:
//
//	429 {"error": {"windows": [{"name": "minute", "used": 60, "limit": 60, "resets_in_s": 12},
//	                           {"name": "week", "used": 9000, "limit": 9000, "resets_in_s": 260000, "model": "acme-large"}]}}
//
// A rule reads one field. It cannot compare two, nor take the latest over a list, so that is left to the hook; the rest is rules.
#include "weir.h"

static const char manifest[] = WEIR_JSON({
	"name": "acme-windows", "version": "1.0.0", "abi": "1.0", "license": "MIT",
	"summary": "Acme: how long to rest, from the quota windows that are used up",
	"kinds": ["classifier"], "hooks": ["classify"],
	"matches": [{"providers": ["acme", "acme-*"]}],
	"needs": {"error_text": "prefix"},
	"limits": {"memory_mib": 1},
	"rules": [
		{"id": "no-credit", "status": [402], "code": ["balance_empty"], "then": {"reason": "credits_exhausted", "scope": "connection"}},
		{"id": "no-such-model", "status": [404], "text_contains": ["is not served here"], "then": {"reason": "model_not_found"}}
	],
	"examples": [
		{"name": "the balance", "op": "classify", "input": {"provider": "acme", "status": 402, "error": {"code": "balance_empty",
			"text": "{\"error\":{\"code\":\"balance_empty\"}}"}}, "expect": {"reason": "credits_exhausted", "rule": "no-credit"}},
		{"name": "the model", "op": "classify", "input": {"provider": "acme", "status": 404, "error": {
			"text": "acme-huge is not served here"}}, "expect": {"reason": "model_not_found", "scope": "model"}},
		{"name": "a minute", "op": "classify", "input": {"provider": "acme", "status": 429, "error": {
			"text": "{\"error\": {\"windows\": [{\"name\": \"minute\", \"used\": 61, \"limit\": 60, \"resets_in_s\": 12}, {\"name\": \"day\", \"used\": 700, \"limit\": 900, \"resets_in_s\": 50000}]}}"}},
			"expect": {"reason": "rate_limit_exceeded", "scope": "connection", "retry_after_ms": 12000}},
		{"name": "the longest of two, for one model", "op": "classify", "input": {"provider": "acme", "model": "acme/acme-large", "status": 429, "error": {
			"text": "{\"error\": {\"windows\": [{\"name\": \"week\", \"used\": 9000, \"limit\": 9000, \"resets_in_s\": 260000, \"model\": \"acme-large\"}, {\"name\": \"minute\", \"used\": 60, \"limit\": 60, \"resets_in_s\": 12}]}}"}},
			"expect": {"reason": "quota_exhausted", "scope": "model", "retry_after_ms": 260000000, "message": "Acme's window \"week\" is used up"}},
		{"name": "a window of another model", "op": "classify", "input": {"provider": "acme", "model": "acme/large", "status": 429, "error": {
			"text": "{\"error\": {\"windows\": [{\"name\": \"week\", \"used\": 9000, \"limit\": 9000, \"resets_in_s\": 260000, \"model\": \"acme-large\"}]}}"}}, "expect": null},
		{"name": "nothing is used up", "op": "classify", "input": {"provider": "acme", "status": 429, "error": {
			"text": "{\"error\": {\"windows\": [{\"name\": \"minute\", \"used\": 1, \"limit\": 60, \"resets_in_s\": 12}]}}"}}, "expect": null},
		{"name": "not JSON", "op": "classify", "input": {"provider": "acme", "status": 429, "error": {"text": "{\"error\": {\"windows\": [{\"used\""}},
			"expect": null}
	]
});

// decode writes the text of a JSON string to a buffer, as much as fits. What is escaped by its number and is not ASCII becomes ?.
static weir_json decode(weir_json v, char *to, size_t cap) {
	weir_json out = {to, to};
	const char *p = v.at;
	if (p == v.end || *p != '"') return out;
	for (p++; p < v.end && *p != '"' && out.end < to + cap; p++, out.end++) {
		char c = *p;
		if (c == '\\' && p + 1 < v.end) switch (c = *++p) {
		case 'n': c = '\n'; break;
		case 't': c = '\t'; break;
		case 'r': c = '\r'; break;
		case 'b': case 'f': c = ' '; break;
		case 'u': {
			uint32_t code = 0;
			for (int i = 0; i < 4 && p + 1 < v.end; i++) p++, code = code << 4 | ((*p & 15) + (*p > '9' ? 9 : 0));
			c = code < 0x80 ? (char)code : '?';
		}
		}
		to[out.end - to] = c;
	}
	return out;
}

// put_text adds text to a JSON string in the result.
static void put_text(weir_json text) {
	for (; text.at < text.end; text.at++) {
		if (*text.at == '"' || *text.at == '\\') weir_put('\\');
		weir_put((uint8_t)*text.at < ' ' ? ' ' : *text.at);
	}
}

// is_of says whether a window counts for the model that was asked for: acme-large for "acme/acme-large". One without a model does.
static int is_of(weir_json window, weir_json asked) {
	weir_json v = weir_get(window, "model");
	if (v.at == v.end) return 1;
	const char *p = v.end, *q = asked.end;
	while (p > v.at + 1 && q > asked.at && p[-1] == q[-1]) p--, q--;
	return p == v.at + 1 && q > asked.at && (q[-1] == '/' || q[-1] == '"');
}

enum { HOUR_S = 3600, MONTH_S = 30 * 24 * HOUR_S };

static uint64_t classify(weir_json input) {
	static char body_text[4096], name_text[64];
	if (weir_int(weir_get(input, "status"), 0) != 429) return 0;
	weir_json asked = weir_get(input, "model");
	weir_json text = decode(weir_get(weir_get(input, "error"), "text"), body_text, sizeof body_text);
	weir_json windows = weir_get(weir_get(weir_take(&text), "error"), "windows"), longest = {0, 0}, w;
	int64_t rest_s = -1;
	for (weir_json in = weir_inside(windows); w = weir_take(&in), w.at < w.end; ) {
		int64_t used = weir_int(weir_get(w, "used"), -1), limit = weir_int(weir_get(w, "limit"), INT64_MAX);
		int64_t resets_s = weir_int(weir_get(w, "resets_in_s"), 0);
		if (used >= limit && resets_s > rest_s && is_of(w, asked)) rest_s = resets_s, longest = w;
	}
	if (rest_s < 0) {
		static const char line[] = "a 429 without a window that is used up";
		weir_log(1, line, sizeof line - 1);
		return 0;
	}
	weir_json model = weir_get(longest, "model");
	weir_puts(rest_s <= HOUR_S ? "{\"reason\":\"rate_limit_exceeded\"" : "{\"reason\":\"quota_exhausted\"");
	weir_puts(model.at < model.end ? ",\"scope\":\"model\"" : ",\"scope\":\"connection\"");
	weir_puts(",\"retry_after_ms\":");
	weir_put_int((uint64_t)(rest_s < MONTH_S ? rest_s : MONTH_S) * 1000);
	weir_puts(",\"message\":\"Acme's window \\\"");
	put_text(decode(weir_get(longest, "name"), name_text, sizeof name_text));
	weir_puts("\\\" is used up\"}");
	return weir_result();
}

uint64_t WEIR_EXPORT(weir_call)(int32_t op, size_t len) {
	switch (op) {
	case WEIR_DESCRIBE:
		weir_puts(manifest);
		return weir_result();
	case WEIR_CLASSIFY:
		return classify((weir_json){weir_input, weir_input + len});
	}
	return 0;
}
