//! Bounded waiting for something that another process or the kernel does in its own time. Never a
//! substitute for an injected clock: nothing here makes time pass for limiter itself.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// Asks until there is an answer; `None` once `limit` is over.
pub fn wait_for<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL);
    }
}
