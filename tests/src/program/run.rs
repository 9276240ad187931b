//! `BPF_PROG_TEST_RUN` (kernel 4.12; frames above one page: 5.18), and the choice of the CPU it runs on.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::sys;

/// What the program wants done with the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `XDP_PASS`.
    Pass,
    /// `XDP_DROP`.
    Drop,
    /// Anything else, which this program must never answer.
    Other(u32),
}

/// `struct { … } test` of `union bpf_attr`, as far as kernels since 5.18 read it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    program: u32,
    answer: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

const BPF_PROG_TEST_RUN: libc::c_int = 10;

pub(super) fn once(program: BorrowedFd<'_>, frame: &[u8]) -> Action {
    repeated(program, frame, 1)
}

/// The same frame `times` times (above 0), in one call; the answer to the last one.
pub(super) fn repeated(program: BorrowedFd<'_>, frame: &[u8], times: u32) -> Action {
    let mut attributes = Attributes {
        program: program.as_raw_fd().unsigned_abs(),
        size_in: u32::try_from(frame.len()).unwrap_or(u32::MAX),
        data_in: frame.as_ptr() as u64,
        repeat: times,
        ..Attributes::default()
    };
    let ran = sys::bpf(BPF_PROG_TEST_RUN, &mut attributes);
    assert!(ran.is_ok(), "test run of {} bytes: {ran:?}", frame.len());
    match attributes.answer {
        1 => Action::Drop,
        2 => Action::Pass,
        other => Action::Other(other),
    }
}

/// Keeps the calling thread, and those it will start, on this CPU.
///
/// # Panics
/// If there is no such CPU.
pub(super) fn stay_on_cpu(cpu: usize) {
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).unwrap_or_else(|error| panic!("CPU {cpu}: {error}"));
}

/// Runs `work` on this CPU (0 is the first) and goes back to where the thread may run otherwise.
///
/// # Panics
/// If there is no such CPU.
pub fn on_cpu<T>(cpu: usize, work: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None).unwrap_or_else(|error| panic!("affinity: {error}"));
    stay_on_cpu(cpu);
    let result = work();
    sched_setaffinity(None, &before).unwrap_or_else(|error| panic!("affinity: {error}"));
    result
}
