//! When things happen in the demo: windows, the quiet stretch at their edges, and who is due to send
//! how much by when. Pure: the time is passed in.

/// Length of a window of the demo's rule, as in its policy.
pub(super) const LENGTH_MS: u64 = 10_000;

/// Nobody sends this close to a window's edge. A packet is judged microseconds after it is sent, by
/// a clock up to 4 ms behind; with this distance neither that nor a busy machine moves it into
/// another window than the one its sender wrote on it.
pub(super) const QUIET_MS: u64 = 300;

const BUSY_MS: u64 = LENGTH_MS - 2 * QUIET_MS;

/// A moment: milliseconds of Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(pub(super) u64);

impl Moment {
    /// The window that holds this moment: windows are aligned to the epoch, as the kernel's are.
    pub(super) fn window(self) -> u64 {
        self.0 / LENGTH_MS
    }

    fn into_window(self) -> u64 {
        self.0 % LENGTH_MS
    }

    /// How many of `per_window` packets should have been sent by now, evenly over the busy stretch,
    /// the first at its beginning.
    pub(super) fn due(self, per_window: u64) -> u64 {
        let Some(busy) = self.into_window().checked_sub(QUIET_MS) else {
            return 0;
        };
        (per_window * busy / BUSY_MS + 1).min(per_window)
    }

    /// Whether one may send now.
    pub(super) fn is_busy(self) -> bool {
        (QUIET_MS..LENGTH_MS - QUIET_MS).contains(&self.into_window())
    }
}

/// Whether all that was sent in this window has long arrived.
pub(super) fn is_over(window: u64, now: Moment) -> bool {
    now.0 >= (window + 1) * LENGTH_MS
}

/// The busy stretch of a window: its first moment and the first one after it.
fn busy_stretch(window: u64) -> (Moment, Moment) {
    let start = window * LENGTH_MS;
    (Moment(start + QUIET_MS), Moment(start + LENGTH_MS - QUIET_MS))
}

/// Whether traffic that ran from `started` to `ended` filled this window from its start to its end.
pub(super) fn covered(window: u64, started: Moment, ended: Moment) -> bool {
    let (first, end) = busy_stretch(window);
    started <= first && ended >= end
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 170_000 * LENGTH_MS;

    #[test]
    fn sends_evenly_and_never_near_an_edge() {
        let due = |into, per_window| Moment(START + into).due(per_window);
        assert_eq!(
            [0, 299, 300, 305, 5_000, 9_699, 9_999].map(|into| due(into, 2_000)),
            [0, 0, 1, 2, 1_001, 2_000, 2_000]
        );
        assert_eq!([299, 300, 1_239, 1_240, 8_760].map(|into| due(into, 10)), [0, 1, 1, 2, 10]);
        for (into, busy) in
            [(0, false), (299, false), (300, true), (9_699, true), (9_700, false), (9_999, false)]
        {
            assert_eq!(Moment(START + into).is_busy(), busy, "{into} ms into the window");
        }
    }

    #[test]
    fn a_window_is_full_only_if_its_whole_busy_stretch_was() {
        let at = |into| Moment(START + into);
        assert!(covered(170_000, at(300), at(9_700)));
        assert!(!covered(170_000, at(301), at(9_700)));
        assert!(!covered(170_000, at(0), at(9_699)));
        assert!(!covered(170_001, at(0), at(9_999)));
    }
}
