// weir.ts is the raw ABI of Weir plugins (ABI-1) for AssemblyScript. Input and answer lie in two buffers that are made once: a guest
// that makes no objects in its calls needs no garbage collector.

export const DESCRIBE: i32 = 1;
export const RESTATE: i32 = 20;
export const CLASSIFY: i32 = 30;

const inputSize: i32 = 256 << 10;
const outputSize: i32 = 16 << 10;
const input: usize = heap.alloc(inputSize);
const output: usize = heap.alloc(outputSize);
let used: i32 = 0; // of the output

// buffer is what weir_alloc answers.
export function buffer(size: i32): usize {
  return size <= inputSize ? input : 0;
}

// at is one byte of the input.
export function at(i: i32): u8 {
  return load<u8>(input + i);
}

// put adds ASCII text to the answer.
export function put(text: string): void {
  for (let i = 0; i < text.length; i++) putByte(<u8>text.charCodeAt(i));
}

// putInt adds a number from 0.
export function putInt(n: i64): void {
  if (n > 9) putInt(n / 10);
  putByte(<u8>(48 + n % 10));
}

function putByte(b: u8): void {
  if (used < outputSize) store<u8>(output + used, b);
  used++;
}

// result is what was put, for weir_call to return; if it did not fit, no opinion.
export function result(): u64 {
  const n = used;
  used = 0;
  return n <= outputSize ? (<u64>output << 32) | <u64>n : 0;
}

// find is where text first stands in the input from a place on, up to end; -1: nowhere.
export function find(text: string, from: i32, end: i32): i32 {
  for (let i = from; i + text.length <= end; i++) {
    let k = 0;
    while (k < text.length && at(i + k) == <u8>text.charCodeAt(k)) k++;
    if (k == text.length) return i;
  }
  return -1;
}

// number is the whole number that begins at a place of the input, which it ends before end; -1: there is none.
export function number(from: i32, end: i32): i64 {
  let n: i64 = -1;
  for (let i = from; i < end && at(i) >= 48 && at(i) <= 57 && n < 1_000_000_000_000_000; i++) n = max(n, 0) * 10 + (at(i) - 48);
  return n;
}
