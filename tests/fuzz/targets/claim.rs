//! libFuzzer's way into [`limiter_fuzz::claim`]; `cargo xtask fuzz claim` builds and runs it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| limiter_fuzz::claim::run(input));
