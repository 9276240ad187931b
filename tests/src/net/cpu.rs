//! Ties a sender to a CPU. A veth pair handles a packet on the CPU that sent it, so this decides which
//! CPU's caches and counters a packet meets.

use rustix::thread::{CpuSet, sched_setaffinity};

use super::{Error, Result};

/// Runs `work` on a thread that stays on this CPU; numbers begin at 0.
pub fn on_cpu<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || pin(cpu).map(|()| work()));
        // A panic inside is the caller's own.
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Keeps the calling thread, and those it will start, on this CPU.
pub(crate) fn pin(cpu: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)
        .map_err(|errno| Error::system(format!("run on CPU {cpu}"), errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_where_it_should() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
            assert_eq!(on_cpu(cpu, rustix::thread::sched_getcpu).unwrap(), cpu);
        }
    }
}
