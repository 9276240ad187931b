//! The `limiter` binary.
fn main() {}
