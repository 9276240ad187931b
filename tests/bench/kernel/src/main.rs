//! Kernel programs of the bench: what limiter is compared with, and what feeds it packets. Nothing here
//! is part of the product. The modules from `limiter-ebpf` are the product's own files, so that a
//! comparison parses, classifies and counts exactly as the product does; only `parse_drop` knows them.

#![no_std]
#![no_main]
#![feature(core_intrinsics, asm_experimental_arch)]
#![expect(internal_features, reason = "BPF has no other way to an atomic addition")]

#[expect(dead_code, reason = "no packet is judged")]
#[path = "../../../../limiter-ebpf/src/border.rs"]
mod border;
#[path = "../../../../limiter-ebpf/src/classify.rs"]
mod classify;
#[path = "../../../../limiter-ebpf/src/clock.rs"]
mod clock;
#[path = "../../../../limiter-ebpf/src/facts.rs"]
mod facts;
#[path = "../../../../limiter-ebpf/src/frame.rs"]
mod frame;
#[path = "../../../../limiter-ebpf/src/maps.rs"]
mod maps;
#[path = "../../../../limiter-ebpf/src/stats.rs"]
mod stats;
#[path = "../../../../limiter-ebpf/src/table.rs"]
mod table;
#[path = "../../../../limiter-ebpf/src/verdict.rs"]
mod verdict;

mod bare;
mod constant;
mod generate;
mod parse_drop;
mod sources;
mod yardstick;

/// Never runs; see limiter-ebpf.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The kernel asks for it before it lends GPL-only helpers.
#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
