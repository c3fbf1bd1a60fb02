//! Restatement and classification for a relay that hides whom it asked. Whatever its own upstream answered, the relay says 500:
//!
//!     500 {"error": {"message": "upstream answered 429 (account 3): slow down, retry in 20s", "type": "relay_error"}}
//!
//! A rule restates to one status that it names, so it would take a rule for each. The hook reads the status. And what it means
//! depends on who is meant: an account of the relay's is empty or refused, not ours, so one model rests and ours stays in use.

pub mod weir;

use weir::Json;

const MANIFEST: &str = r##"{
    "name": "relay-status", "version": "1.0.0", "abi": "1.0", "license": "MIT",
    "summary": "A relay that answers 500 for whatever its upstream answered",
    "kinds": ["restatement", "classifier"], "hooks": ["restate", "classify"],
    "matches": [{"providers": ["relay", "relay-*"]}],
    "needs": {"error_text": "prefix"},
    "limits": {"memory_mib": 4},
    "rules": [
        {"id": "no-channel", "status": [503], "text_contains": ["no channel for"], "then": {"restate_status": 404, "restate_code": "model_not_found"}},
        {"id": "no-such-model", "status": [404], "text_contains": ["no channel for"], "then": {"reason": "model_not_found", "scope": "model"}}
    ],
    "examples": [
        {"name": "no channel", "op": "restate", "input": {"provider": "relay", "status": 503, "error": {"text": "no channel for m-large"}},
         "expect": {"status": 404, "rule": "no-channel"}},
        {"name": "no channel, so no model", "op": "classify", "input": {"provider": "relay", "status": 404, "original_status": 503, "error": {"text": "no channel for m-large"}},
         "expect": {"reason": "model_not_found", "rule": "no-such-model"}},
        {"name": "hidden limit", "op": "restate", "input": {"provider": "relay", "status": 500, "error": {
            "message": "upstream answered 429 (account 3): slow down, retry in 20s", "text": "{\"error\":{\"message\":\"upstream answered 429 (account 3): slow down, retry in 20s\"}}"}},
         "expect": {"status": 429, "code": "rate_limit_exceeded", "note": "relay_upstream", "retry_after_ms": 20000}},
        {"name": "hidden refusal", "op": "restate", "input": {"provider": "relay", "status": 500, "error": {
            "message": "upstream answered 401 (account 1): invalid key", "text": "{\"error\":{\"message\":\"upstream answered 401 (account 1): invalid key\"}}"}},
         "expect": {"status": 401}},
        {"name": "the relay's own fault", "op": "restate", "input": {"provider": "relay", "status": 500, "error": {
            "message": "disk full", "text": "{\"error\":{\"message\":\"disk full\"}}"}}, "expect": null},
        {"name": "no status", "op": "restate", "input": {"provider": "relay", "status": 500, "error": {
            "message": "upstream answered 99999", "text": "{\"error\":{\"message\":\"upstream answered 99999\"}}"}}, "expect": null},
        {"name": "the relay's account is limited", "op": "classify", "input": {"provider": "relay", "status": 429, "original_status": 500, "error": {
            "message": "upstream answered 429 (account 3): slow down, retry in 20s", "text": "{\"error\":{\"message\":\"upstream answered 429 (account 3): slow down, retry in 20s\"}}"}},
         "expect": {"reason": "rate_limit_exceeded", "scope": "model", "fallback": true, "retry_after_ms": 20000,
            "message": "the relay's own upstream answered 429: slow down, retry in 20s"}},
        {"name": "the relay's account is refused", "op": "classify", "input": {"provider": "relay", "status": 401, "original_status": 500, "error": {
            "message": "upstream answered 401 (account 1): invalid key", "text": "{\"error\":{\"message\":\"upstream answered 401 (account 1): invalid key\"}}"}},
         "expect": {"reason": "model_access_denied", "scope": "model", "terminal": false, "cooldown_ms": 600000}},
        {"name": "our key is refused", "op": "classify", "input": {"provider": "relay", "status": 401, "original_status": 401, "error": {
            "message": "invalid key", "text": "{\"error\":{\"message\":\"invalid key\"}}"}}, "expect": null}
    ]
}"##;

/// What the relay says about the answer that it got.
struct Hidden<'a> {
    status: i64,
    message: &'a str,
    retry_ms: Option<i64>,
}

fn hidden(message: &str) -> Option<Hidden<'_>> {
    let said = after(message, "upstream answered ")?;
    let status = digits(said).parse().unwrap_or(0);
    if !(400..600).contains(&status) {
        weir::log(2, "the relay names a status of its upstream that is no error");
        return None;
    }
    let retry_ms = after(said, "retry in ").and_then(|t| digits(t).parse::<i64>().ok()).map(|s| s.min(30 * 24 * 3600) * 1000);
    Some(Hidden { status, message: after(said, ": ").unwrap_or(""), retry_ms })
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).map(|at| &text[at + mark.len()..])
}

fn digits(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
}

fn restate(input: Json) -> Option<String> {
    let message = input.get("error").get("message").text();
    let said = hidden(&message)?;
    let mut out = format!("{{\"status\":{},\"note\":\"relay_upstream\"", said.status);
    if said.status == 429 {
        out.push_str(",\"code\":\"rate_limit_exceeded\"");
    }
    if let Some(ms) = said.retry_ms {
        out.push_str(&format!(",\"retry_after_ms\":{}", ms));
    }
    out.push('}');
    Some(out)
}

fn classify(input: Json) -> Option<String> {
    let message = input.get("error").get("message").text();
    let said = hidden(&message)?;
    let reason = match said.status {
        401 | 402 | 403 => "model_access_denied",
        429 => "rate_limit_exceeded",
        500..=599 => "overloaded",
        _ => return None, // the request is at fault, so the usual rules know it
    };
    let mut out = format!("{{\"reason\":\"{}\",\"scope\":\"model\",\"fallback\":true,\"message\":", reason);
    weir::quote(&mut out, &format!("the relay's own upstream answered {}: {:.200}", said.status, said.message));
    match said.retry_ms {
        Some(ms) => out.push_str(&format!(",\"retry_after_ms\":{}", ms)),
        None if reason == "model_access_denied" => out.push_str(",\"cooldown_ms\":600000"),
        None => {}
    }
    out.push('}');
    Some(out)
}

fn call(op: i32, input: Json) -> Option<String> {
    match op {
        weir::DESCRIBE => Some(MANIFEST.into()),
        weir::RESTATE => restate(input),
        weir::CLASSIFY => classify(input),
        _ => None,
    }
}
