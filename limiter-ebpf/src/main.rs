//! The XDP program: packet → frame → parse → classify → limit → verdict → count. This file is the
//! order of the stages and nothing else; each stage is a file of its own.

#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(core_intrinsics, asm_experimental_arch))]
#![cfg_attr(
    target_arch = "bpf",
    expect(internal_features, reason = "BPF has no other way to an atomic compare-and-swap")
)]

#[cfg(target_arch = "bpf")]
mod classify;
#[cfg(target_arch = "bpf")]
mod clock;
#[cfg(target_arch = "bpf")]
mod facts;
#[cfg(target_arch = "bpf")]
mod frame;
#[cfg(target_arch = "bpf")]
mod level;
#[cfg(target_arch = "bpf")]
mod limit;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod pool;
#[cfg(target_arch = "bpf")]
mod program;
#[cfg(target_arch = "bpf")]
mod stats;
#[cfg(target_arch = "bpf")]
mod take;
#[cfg(target_arch = "bpf")]
mod verdict;

/// On any other target there is nothing to run: the workspace still builds with a host compiler.
#[cfg(not(target_arch = "bpf"))]
fn main() {}
