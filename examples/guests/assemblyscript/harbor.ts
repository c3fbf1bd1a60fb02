// A classifier in AssemblyScript on the raw ABI. Harbor says at which time of the day its limit ends:
//
//	429 {"error": {"message": "limit reached, resets at 14:30 UTC"}}
//
// A rule reads a length or a date. A time of the day is neither: it has to be set against the clock, so that is left to the hook.
import { at, buffer, CLASSIFY, DESCRIBE, find, number, put, putInt, result } from "./weir";

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

export function weir_abi(): i32 {
  return 1;
}

export function weir_alloc(size: i32): usize {
  return buffer(size);
}

export function weir_call(op: i32, len: i32): u64 {
  if (op == DESCRIBE) return describe();
  if (op == CLASSIFY) return classify(len);
  return 0;
}

// abort is where AssemblyScript goes when a check of its own fails: a trap, which the host knows how to deal with.
export function abort(_message: string | null, _file: string | null, _line: u32, _column: u32): void {
  unreachable();
}

function describe(): u64 {
  put('{"name": "harbor-clock", "version": "1.0.0", "abi": "1.0", "license": "MIT", ');
  put('"summary": "Harbor: rest until the time of the day that it names", ');
  put('"kinds": ["classifier"], "hooks": ["classify"], "matches": [{"providers": ["harbor", "harbor-*"]}], ');
  put('"needs": {"error_text": "prefix"}, "limits": {"memory_mib": 1}, ');
  put('"rules": [{"id": "no-credit", "status": [402], "text_contains": ["no credit left"], "then": {"reason": "credits_exhausted", "scope": "connection"}}], ');
  put('"examples": [');
  put('{"name": "later today", "op": "classify", "now_ms": 1790000000000, "input": {"provider": "harbor", "status": 429, "error": {');
  put('"text": "limit reached, resets at 14:30 UTC"}}, "expect": {"reason": "quota_exhausted", "retry_after_ms": 1000000}}, ');
  put('{"name": "tomorrow", "op": "classify", "now_ms": 1790000000000, "input": {"provider": "harbor", "status": 429, "error": {');
  put('"text": "limit reached, resets at 14:00 UTC"}}, "expect": {"reason": "quota_exhausted", "retry_after_ms": 85600000}}, ');
  put('{"name": "no time of the day", "op": "classify", "input": {"provider": "harbor", "status": 429, "error": {');
  put('"text": "limit reached, resets at noon"}}, "expect": null}, ');
  put('{"name": "its rule", "op": "classify", "input": {"provider": "harbor", "status": 402, "error": {');
  put('"text": "no credit left"}}, "expect": {"reason": "credits_exhausted", "rule": "no-credit"}}]}');
  return result();
}

function classify(len: i32): u64 {
  if (find('"status":429', 0, len) < 0) return 0;
  const text = find("resets at ", 0, len), clock = find('"now_ms":', 0, len);
  if (text < 0 || clock < 0) return 0;
  const from = text + 10;
  const hours = number(from, min(from + 2, len)), minutes = number(from + 3, min(from + 5, len)), now = number(clock + 9, len);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || at(from + 2) != 58 || now < 0) return 0; // 58 is the colon
  const rest = ((hours * 60 + minutes) * MINUTE - now % DAY + DAY) % DAY;
  put('{"reason":"quota_exhausted","scope":"connection","fallback":true,"retry_after_ms":');
  putInt(rest);
  put("}");
  return result();
}
