//! libFuzzer's way into [`limiter_fuzz::policy`]; `cargo xtask fuzz policy` builds and runs it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| limiter_fuzz::policy::run(input));
