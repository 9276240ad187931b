//! `BPF_PROG_TEST_RUN` (kernel 4.12; frames above one page: 5.18), and the choice of the CPU it runs on.

use std::os::fd::BorrowedFd;

use rustix::thread::{sched_getaffinity, sched_setaffinity};

use crate::bpf;
use crate::net::pin;

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

pub(super) fn once(program: BorrowedFd<'_>, frame: &[u8]) -> Action {
    repeated(program, frame, 1)
}

/// The same frame `times` times (above 0), in one call; the answer to the last one.
pub(super) fn repeated(program: BorrowedFd<'_>, frame: &[u8], times: u32) -> Action {
    let answer = bpf::test_run(program, frame, times);
    match answer.unwrap_or_else(|error| panic!("test run of {} bytes: {error}", frame.len())) {
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
    pin(cpu).unwrap_or_else(|error| panic!("{error}"));
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
