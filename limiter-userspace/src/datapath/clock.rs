//! From the kernel program's clock to Unix time. The program reads CLOCK_MONOTONIC (its coarse form) and
//! adds an offset that the daemon keeps in the meta map.
//!
//! A window that is over must not begin again: when the wall clock is set back, the offset follows in
//! steps of half a tick at most, which words in the table outlive (`limiter_common::bucket`, rule 3),
//! and by a twentieth of the time that passes. Forward it follows at once.

use std::time::Duration;

use limiter_common::clock::NANOS_PER_TICK;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// How far off the wall clock the host may be and still count as synchronised, in nanoseconds.
const TOLERANCE: u64 = 1_000_000_000;
/// How far Unix time as the program sees it may step back at once, in nanoseconds, however late the
/// daemon is: half a tick, which leaves the other half to CPUs whose coarse clocks lag.
const LARGEST_STEP_BACK: u64 = NANOS_PER_TICK / 2;

/// How the offset was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// To be used from now on: nanoseconds from the monotonic clock to Unix time.
    pub offset: u64,
    /// Whether Unix time as the program sees it is within a second of the wall clock.
    pub synchronised: bool,
    /// Whether it went forward by more than that second: words that were alive may be dead now.
    pub jumped: bool,
}

/// Moves the offset towards the measured one, `elapsed` after it was moved last.
#[must_use]
pub fn follow(current: u64, measured: u64, elapsed: Duration) -> Step {
    if measured >= current {
        let jumped = measured - current > TOLERANCE;
        return Step { offset: measured, synchronised: true, jumped };
    }
    let slew = u64::try_from(elapsed.as_nanos() / 20).unwrap_or(u64::MAX).min(LARGEST_STEP_BACK);
    let offset = measured.max(current.saturating_sub(slew));
    Step { offset, synchronised: offset - measured <= TOLERANCE, jumped: false }
}

/// CLOCK_MONOTONIC in nanoseconds.
#[must_use]
pub fn monotonic() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// The offset from CLOCK_MONOTONIC to the wall clock at this moment, in nanoseconds.
#[must_use]
pub fn measure() -> u64 {
    // The wall clock is read between two readings of the other, so that being interrupted makes an
    // error of half the interruption at most; the best of three is taken.
    let tries = [(); 3].map(|()| {
        let before = monotonic();
        let wall = nanos(clock_gettime(ClockId::Realtime));
        let after = monotonic();
        (after.saturating_sub(before), wall.saturating_sub(before.midpoint(after)))
    });
    tries.into_iter().min().map_or(0, |(_, offset)| offset)
}

fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn forward_is_followed_at_once() {
        let step = follow(100 * SECOND, 100 * SECOND + 5, Duration::from_secs(1));
        assert_eq!(step, Step { offset: 100 * SECOND + 5, synchronised: true, jumped: false });
        let step = follow(100 * SECOND, 3700 * SECOND, Duration::ZERO);
        assert_eq!(step, Step { offset: 3700 * SECOND, synchronised: true, jumped: true });
    }

    #[test]
    fn backward_is_followed_by_a_twentieth_of_the_time() {
        let step = follow(100 * SECOND, 90 * SECOND, Duration::from_secs(1));
        assert_eq!(
            step,
            Step { offset: 100 * SECOND - SECOND / 20, synchronised: false, jumped: false }
        );
        let near = follow(100 * SECOND, 100 * SECOND - 1000, Duration::from_secs(1));
        assert_eq!(near, Step { offset: 100 * SECOND - 1000, synchronised: true, jumped: false });
    }

    #[test]
    fn unix_time_never_steps_back_by_a_tick_whatever_the_wall_clock_does() {
        let (mut offset, mut now) = (100 * SECOND, 0);
        for (measured, elapsed) in [(100, 1), (40, 1), (41, 3_600), (500, 1), (499, 30), (0, 1)] {
            now += elapsed * SECOND;
            let before = now + offset;
            offset = follow(offset, measured * SECOND, Duration::from_secs(elapsed)).offset;
            assert!(now + offset + NANOS_PER_TICK / 2 >= before);
        }
    }

    #[test]
    fn ten_seconds_back_take_two_hundred() {
        let mut offset = 100 * SECOND;
        let steps = (1..).find(|_| {
            offset = follow(offset, 90 * SECOND, Duration::from_secs(1)).offset;
            offset == 90 * SECOND
        });
        assert_eq!(steps, Some(200));
    }
}
