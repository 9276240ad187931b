//! What a run took of its CPU. Packets are handled where they are sent, in the sender's own time or in
//! that of the CPU's ksoftirqd; whatever else runs there meanwhile is no packet's cost.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How long a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    /// By the wall clock.
    pub(crate) wall: Duration,
    /// CPU time of the sender and of ksoftirqd.
    pub(crate) cpu: Duration,
}

impl Took {
    /// Whether nobody else ran, and the CPU time is all of it. It never is where softirqs' time is kept
    /// apart.
    pub(crate) fn is_whole(&self) -> bool {
        self.cpu.as_secs_f64() > 0.9 * self.wall.as_secs_f64()
    }
}

/// Whether this kernel counts softirqs' time as time of the thread they interrupt; `None` if it doesn't
/// show what it was built with.
pub(crate) fn softirqs_are_counted() -> Option<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let config = fs::read_to_string(format!("/boot/config-{}", release.trim()));
    let config = config.ok().or_else(|| {
        let unpacked = Command::new("zcat").arg("/proc/config.gz").output().ok()?;
        unpacked.status.success().then(|| String::from_utf8_lossy(&unpacked.stdout).into_owned())
    })?;
    Some(!config.lines().any(|line| line == "CONFIG_IRQ_TIME_ACCOUNTING=y"))
}

/// Times what the calling thread does, which stays on this CPU.
pub(crate) fn timed<T>(cpu: usize, work: impl FnOnce() -> T) -> (T, Took) {
    let softirqs = ksoftirqd(cpu);
    let spent = || cpu_time() + softirqs.as_ref().and_then(run_time).unwrap_or_default();
    let (started, before) = (Instant::now(), spent());
    let done = work();
    let took = Took { wall: started.elapsed(), cpu: spent().saturating_sub(before) };
    (done, took)
}

/// Of the calling thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The statistics of the thread that takes over a CPU's softirqs when there are many.
fn ksoftirqd(cpu: usize) -> Option<PathBuf> {
    let name = format!("ksoftirqd/{cpu}");
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let found = processes
        .into_iter()
        .find(|path| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name));
    found.map(|path| path.join("schedstat"))
}

fn run_time(schedstat: &PathBuf) -> Option<Duration> {
    let text = fs::read_to_string(schedstat).ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}
