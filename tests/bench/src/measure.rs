//! Nanoseconds per packet of programs run by test-run, one CPU or several at once.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Barrier;

use anyhow::{Context, Result, anyhow};
use limiter_tests::bpf;
use limiter_tests::net::on_cpu;
use rustix::time::{ClockId, clock_gettime};

/// A program to run on a CPU.
pub(crate) struct Runner {
    pub(crate) program: OwnedFd,
    pub(crate) cpu: usize,
}

/// Runs each program on its CPU, all at once, `packets` times each; the mean of their nanoseconds per
/// packet.
pub(crate) fn run(runners: &[Runner], frame: &[u8], packets: u32) -> Result<f64> {
    let start = Barrier::new(runners.len());
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = runners
            .iter()
            .map(|runner| scope.spawn(|| timed(runner, frame, packets, &start)))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().map_err(|_panic| anyhow!("a measuring thread panicked"))?
        });
        joined.collect::<Result<Vec<f64>>>()
    })?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}

fn timed(runner: &Runner, frame: &[u8], packets: u32, start: &Barrier) -> Result<f64> {
    let measured = on_cpu(runner.cpu, || {
        start.wait();
        let before = cpu_time();
        bpf::test_run(runner.program.as_fd(), frame, packets).map(|_| cpu_time() - before)
    })?;
    Ok(measured.context("test-run")? / f64::from(packets))
}

/// CPU time of this thread in nanoseconds. The kernel's own figure for a test-run is rounded down to
/// whole nanoseconds per packet, and contains what other processes took.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
