//! Requests and answers of every API in every version.
#![no_main]

#[path = "../bodies/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|input: &[u8]| frames::run(input));
