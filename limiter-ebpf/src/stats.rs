//! Counting, on this CPU alone: no atomic, no shared line.

use limiter_common::counters::{self, RuleCount};
use limiter_common::packet::Fault;
use limiter_common::verdict::Exit;

use crate::maps;

#[inline(always)]
pub fn exit(exit: Exit, length: u32) {
    add(counters::exit_row(exit), length);
}

#[inline(always)]
pub fn fault(fault: Fault, length: u32) {
    add(counters::fault_row(fault), length);
}

#[inline(always)]
pub fn rule(row: u32, count: RuleCount, length: u32) {
    add(count.row(row), length);
}

#[inline(always)]
fn add(row: u32, length: u32) {
    let Some(count) = maps::counter(row) else {
        return;
    };
    // SAFETY: the pointer is this CPU's own value, and nothing else on this CPU runs between the
    // look-up and the write: XDP programs don't interrupt each other on one CPU.
    unsafe {
        (*count).packets = (*count).packets.wrapping_add(1);
        (*count).bytes = (*count).bytes.wrapping_add(length as u64);
    }
}
