//! Kernel log lines for people who look for one packet: off unless the program was loaded with a log
//! level. Off, the verifier removes the calls, and a packet pays nothing.

use aya_ebpf::programs::XdpContext;
use aya_log_ebpf::debug;

/// Says that a packet was refused. The source is an IPv4 address or the upper half of an IPv6 one.
#[inline(always)]
pub fn refused(context: &XdpContext, source: u64, length: u32) {
    debug!(context, "refused: source {:x}, {} bytes", source, length);
}
