//! The XDP program: packet → frame → parse → classify → limit → verdict → count. This file names the
//! stages and nothing else; each is a file of its own, `program` puts them in order.

#![no_std]
#![no_main]
#![feature(core_intrinsics, asm_experimental_arch)]
#![expect(internal_features, reason = "BPF has no other way to an atomic compare-and-swap")]

mod border;
mod classify;
mod clock;
mod facts;
mod frame;
mod limit;
mod maps;
mod program;
mod stats;
mod table;
mod trace;
mod verdict;
