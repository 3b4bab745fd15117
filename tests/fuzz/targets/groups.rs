//! Records of groups: keys, values, and what a coordinator makes of them.
#![no_main]

#[path = "../bodies/groups.rs"]
mod groups;

libfuzzer_sys::fuzz_target!(|input: &[u8]| groups::run(input));
