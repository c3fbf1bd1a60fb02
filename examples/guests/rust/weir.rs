//! The raw ABI of Weir plugins (ABI-1, ABI-6) for Rust without crates: the exports, the host's functions, and just enough JSON.
//! The plugin is `fn call(op: i32, input: Json) -> Option<String>` in the root of the crate; `None` is no opinion.

use std::cell::RefCell;

pub const DESCRIBE: i32 = 1;
pub const RESTATE: i32 = 20;
pub const CLASSIFY: i32 = 30;

/// The functions of the host. A negative result is an error: -1 not found, -2 denied, -3 too large, -4 invalid, -5 unavailable,
/// -6 cancelled.
pub mod host {
    #[link(wasm_import_module = "weir")]
    extern "C" {
        pub fn log(level: i32, line: *const u8, len: usize);
        pub fn now_ms() -> i64;
        pub fn random(to: *mut u8, len: usize) -> i32;
        pub fn kv_get(key: *const u8, key_len: usize, to: *mut u8, cap: usize) -> i32;
        pub fn kv_set(key: *const u8, key_len: usize, value: *const u8, len: usize, ttl_ms: i64) -> i32;
        pub fn kv_add(key: *const u8, key_len: usize, delta: i64, ttl_ms: i64) -> i64;
        pub fn http_fetch(request: *const u8, len: usize, to: *mut u8, cap: usize) -> i32;
        pub fn secret_ready(name: *const u8, len: usize) -> i32;
        pub fn metric(name: *const u8, len: usize, value: f64) -> i32;
        pub fn cancelled() -> i32;
    }
}

/// Writes a line to the host's log: 0 debug, 1 info, 2 warn, 3 error.
pub fn log(level: i32, line: &str) {
    unsafe { host::log(level, line.as_ptr(), line.len()) } // the host only reads the line
}

thread_local! { // there is one thread; this is how it owns what outlives a call
    static INPUT: RefCell<Vec<u8>> = RefCell::new(Vec::new());
    static OUTPUT: RefCell<String> = RefCell::new(String::new());
}

#[no_mangle]
pub extern "C" fn weir_abi() -> i32 {
    1
}

#[no_mangle]
pub extern "C" fn weir_alloc(size: usize) -> *mut u8 {
    INPUT.with(|b| {
        let mut b = b.borrow_mut();
        b.resize(size.max(1), 0);
        b.as_mut_ptr()
    })
}

#[no_mangle]
pub extern "C" fn weir_call(op: i32, len: usize) -> u64 {
    let answer = INPUT.with(|b| crate::call(op, Json(b.borrow().get(..len).unwrap_or_default())));
    OUTPUT.with(|o| {
        let mut o = o.borrow_mut();
        *o = answer.unwrap_or_default();
        if o.is_empty() { 0 } else { (o.as_ptr() as u64) << 32 | o.len() as u64 }
    })
}

/// A JSON value in its text: found, not parsed. A value that is not there is an empty one, and so is what bad JSON hides.
#[derive(Clone, Copy)]
pub struct Json<'a>(pub &'a [u8]);

impl<'a> Json<'a> {
    /// The member of that name of an object.
    pub fn get(self, name: &str) -> Json<'a> {
        let mut rest = self.0.strip_prefix(b"{").unwrap_or_default();
        loop {
            let key = take(&mut rest);
            let value = take(&mut rest);
            if key.is_empty() || key.strip_prefix(b"\"").and_then(|k| k.strip_suffix(b"\"")) == Some(name.as_bytes()) {
                return Json(value);
            }
        }
    }

    /// A whole number.
    pub fn int(self) -> Option<i64> {
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }

    /// The text of a string. What the escape \u names beyond ASCII becomes a question mark.
    pub fn text(self) -> String {
        let mut out = Vec::new();
        let mut bytes = self.0.strip_prefix(b"\"").unwrap_or_default().iter().copied();
        while let Some(c) = bytes.next() {
            out.push(match c {
                b'"' => break,
                b'\\' => match bytes.next() {
                    Some(b'n') => b'\n',
                    Some(b't') => b'\t',
                    Some(b'r') => b'\r',
                    Some(b'b') | Some(b'f') | None => b' ',
                    Some(b'u') => {
                        let digits = bytes.by_ref().take(4).map(|d| (d as char).to_digit(16));
                        let code = digits.fold(0, |n, d| n << 4 | d.unwrap_or(0));
                        if code < 0x80 { code as u8 } else { b'?' }
                    }
                    Some(c) => c,
                },
                c => c,
            });
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Takes the next value, or name of a member, off the inside of an object or array. Empty: there is none.
fn take<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let parts = |c: &u8| *c <= b' ' || *c == b',' || *c == b':';
    let text = &rest[rest.iter().position(|c| !parts(c)).unwrap_or(rest.len())..];
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let end = text.iter().position(|c| {
        if escaped {
            escaped = false;
        } else if quoted {
            escaped = *c == b'\\';
            quoted = *c != b'"';
        } else if depth == 0 && (parts(c) || *c == b'}' || *c == b']') {
            return true;
        } else {
            quoted = *c == b'"';
            depth += (*c == b'{' || *c == b'[') as i32 - (*c == b'}' || *c == b']') as i32;
        }
        false
    });
    let (value, after) = text.split_at(end.unwrap_or(text.len()));
    *rest = after;
    value
}

/// Adds text to a JSON document as a string.
pub fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        if c == '"' || c == '\\' {
            out.push('\\');
        }
        out.push(if c < ' ' { ' ' } else { c });
    }
    out.push('"');
}
