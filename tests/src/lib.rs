//! The test kit: what kernel, namespace and daemon tests (and `cargo xtask demo`) need to set up real
//! conditions and take them down again. It must not know how limiter works inside.

#[cfg(feature = "kernel")]
pub mod bpf;
pub mod frame;
pub mod net;
pub mod owner;
pub mod process;
#[cfg(feature = "kernel")]
pub mod program;
pub mod require;
pub mod scale;
pub mod wait;
