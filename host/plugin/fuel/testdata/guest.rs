// A guest on the raw ABI (ABI-1) without crates, for the tests of the rewriter: collections, formatting and panics.
//
// Built with Debian rustc 1.63.0 (package libstd-rust-dev-wasm32):
//
//	rustc --target wasm32-unknown-unknown --crate-type cdylib -O -C panic=abort -C lto -C strip=symbols -C linker=wasm-ld \
//	  -C target-feature=+bulk-memory,+mutable-globals -o guest_rust.wasm guest.rs
use std::collections::{BTreeMap, VecDeque};

static mut INPUT: Vec<u8> = Vec::new();
static mut OUTPUT: String = String::new();

#[no_mangle]
pub extern "C" fn weir_abi() -> i32 {
    1
}

#[no_mangle]
pub unsafe extern "C" fn weir_alloc(size: usize) -> *mut u8 {
    INPUT.resize(size, 0);
    INPUT.as_mut_ptr()
}

fn words(text: &str) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        *counts.entry(word).or_insert(0) += 1;
    }
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    rows.iter().take(8).map(|(w, n)| format!("{}={:>3};", w, n)).collect()
}

fn walk(bytes: &[u8]) -> String {
    let mut queue: VecDeque<(usize, u32)> = VecDeque::from([(0, 0)]);
    let mut seen = vec![false; bytes.len().max(1)];
    let mut total = 0u64;
    while let Some((at, depth)) = queue.pop_front() {
        if at >= seen.len() || std::mem::replace(&mut seen[at], true) {
            continue;
        }
        total += u64::from(depth) * 31 + at as u64;
        let step = bytes.get(at).copied().unwrap_or(1) as usize;
        queue.push_back((at + step % 7 + 1, depth + 1));
        queue.push_back((at + 1, depth + 1));
    }
    format!("{:#x} {:.6}", total, (total as f64).sqrt())
}

#[no_mangle]
pub unsafe extern "C" fn weir_call(op: i32, len: usize) -> u64 {
    let bytes = &INPUT[..len];
    OUTPUT = match op {
        100 => words(&String::from_utf8_lossy(bytes)),
        101 => walk(bytes),
        102 => {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            for n in 0..200 {
                kept.push(bytes.iter().map(|b| b.wrapping_mul(n)).collect());
            }
            format!("{}", kept.iter().flatten().map(|b| u64::from(*b)).sum::<u64>())
        }
        103 => format!("{}", bytes[len]), // panics
        104 => loop {
            OUTPUT.push('x'); // until memory is used up
        },
        _ => return 0,
    };
    (OUTPUT.as_ptr() as u64) << 32 | OUTPUT.len() as u64
}
