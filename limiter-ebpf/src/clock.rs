//! The time of a packet: the kernel's coarse clock plus the daemon's offset, or the test's.

use crate::maps;
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;

/// Unix time in nanoseconds. The coarse clock moves every 1–10 ms, windows are multiples of 100 ms, and
/// reading it costs 20 ns less than the fine one.
#[inline(always)]
pub fn now() -> u64 {
    match maps::test_clock() {
        Some(nanos) => nanos,
        None => {
            let offset = match maps::meta() {
                Some(meta) => meta.wall_offset,
                None => 0,
            };
            // SAFETY: the helper takes nothing and touches nothing. Kernel 5.11 and newer have it.
            unsafe { bpf_ktime_get_coarse_ns() }.wrapping_add(offset)
        }
    }
}
