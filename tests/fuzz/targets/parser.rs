//! libFuzzer's way into [`limiter_fuzz::parser`]; `cargo xtask fuzz parser` builds and runs it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| limiter_fuzz::parser::run(input));
