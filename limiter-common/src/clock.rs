//! Units of time. Nothing here reads a clock: callers pass the time in.

/// Nanoseconds of Unix time.
pub const NANOS_PER_TICK: u64 = 100_000_000;

/// A point in Unix time in units of 100 ms, the resolution of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

impl Tick {
    /// The tick that holds this moment (nanoseconds since 1970).
    #[must_use]
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos / NANOS_PER_TICK)
    }

    /// Its first moment, in nanoseconds since 1970.
    #[must_use]
    pub const fn unix_nanos(self) -> u64 {
        self.0.wrapping_mul(NANOS_PER_TICK)
    }

    /// The low 18 bits, all that a word has room for: 7 h 16 min.
    #[must_use]
    pub const fn low(self) -> u64 {
        self.0 & crate::word::END_MASK
    }
}

/// The length of a fixed window in ticks: 1 (100 ms) … 36,000 (1 h). Windows are aligned to the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowLength(u32);

impl WindowLength {
    /// 100 ms.
    pub const MIN: Self = Self(1);
    /// One hour.
    pub const MAX: Self = Self(36_000);

    /// `None` outside 1 … 36,000 ticks.
    #[must_use]
    pub const fn from_ticks(ticks: u32) -> Option<Self> {
        if ticks >= Self::MIN.0 && ticks <= Self::MAX.0 { Some(Self(ticks)) } else { None }
    }

    /// In ticks of 100 ms.
    #[must_use]
    pub const fn ticks(self) -> u32 {
        self.0
    }

    /// The first tick after the window that holds `now`.
    #[must_use]
    pub const fn end_of(self, now: Tick) -> Tick {
        // The fields are private and never zero, but the verifier can't know: a division by zero
        // must not leave a reachable panic behind.
        let length = self.0 as u64;
        let Some(into) = now.0.checked_rem(length) else {
            return now;
        };
        Tick(now.0.wrapping_sub(into).wrapping_add(length))
    }
}
