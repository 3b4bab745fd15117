//! Record batches: validation, iteration, decompression.
#![no_main]

#[path = "../bodies/batches.rs"]
mod batches;

libfuzzer_sys::fuzz_target!(|input: &[u8]| batches::run(input));
