//! Who offered how much in which window, and how much of it got through. Pure: told by the senders
//! and the receivers, asked by the table and the verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::window::{Moment, covered};

/// The parties of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// Opens a TCP connection a second.
    Polite,
    /// One source that sends UDP without end.
    Flood,
    /// A /24 whose sources each stay within their own limit.
    Prefix,
}

impl Party {
    /// In the order of the table.
    pub(super) const ALL: [Self; 3] = [Self::Polite, Self::Flood, Self::Prefix];

    /// What its packets are limited to per window.
    pub(super) fn limit(self) -> u64 {
        match self {
            Self::Polite | Self::Flood => SOURCE_LIMIT,
            Self::Prefix => PREFIX_LIMIT,
        }
    }
}

/// Per source and window, as in the demo's policy.
pub(super) const SOURCE_LIMIT: u64 = 20;
/// Per /24 and window, as in the demo's policy.
pub(super) const PREFIX_LIMIT: u64 = 200;

/// What one party did in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Packets sent, or connections tried, by the sender's own count.
    pub(super) offered: u64,
    /// Packets that arrived, or connections answered, by the receiver's own count.
    pub(super) admitted: u64,
}

impl Count {
    /// What was offered and didn't arrive.
    pub(super) fn refused(self) -> u64 {
        self.offered.saturating_sub(self.admitted)
    }
}

/// One window of the demo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Unix time divided by the window's length.
    pub(super) index: u64,
    /// Traffic ran from its start to its end, and none of it near an edge.
    pub(super) full: bool,
    counts: [Count; 3],
}

impl Window {
    /// What this party did.
    pub(super) fn of(&self, party: Party) -> Count {
        self.counts[party as usize]
    }
}

/// The counts of all windows since the traffic started.
#[derive(Debug)]
pub(super) struct Ledger {
    started: Moment,
    counts: BTreeMap<u64, [Count; 3]>,
    spoiled: BTreeSet<u64>,
}

impl Ledger {
    /// Traffic starts now.
    pub(super) fn new(started: Moment) -> Self {
        Self { started, counts: BTreeMap::new(), spoiled: BTreeSet::new() }
    }

    /// A sender sent a packet, or tried a connection.
    pub(super) fn offered(&mut self, window: u64, party: Party) {
        self.count(window, party).offered += 1;
    }

    /// A receiver got it.
    pub(super) fn admitted(&mut self, window: u64, party: Party) {
        self.count(window, party).admitted += 1;
    }

    /// A sender was held up across an edge, so that a packet may count for this window or the next:
    /// neither can be judged.
    pub(super) fn spoiled(&mut self, window: u64) {
        self.spoiled.extend([window, window + 1]);
    }

    /// All windows, oldest first, with traffic having run until `now`.
    pub(super) fn windows(&self, now: Moment) -> Vec<Window> {
        let full = |index| covered(index, self.started, now) && !self.spoiled.contains(&index);
        self.counts
            .iter()
            .map(|(&index, &counts)| Window { index, full: full(index), counts })
            .collect()
    }

    fn count(&mut self, window: u64, party: Party) -> &mut Count {
        &mut self.counts.entry(window).or_default()[party as usize]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::window::LENGTH_MS;
    use super::*;

    /// A window with (offered, admitted) of the polite client, the flooder and the /24.
    pub(crate) fn window(full: bool, counts: [(u64, u64); 3]) -> Window {
        let counts = counts.map(|(offered, admitted)| Count { offered, admitted });
        Window { index: 170_000, full, counts }
    }

    #[test]
    fn counts_by_the_window_written_on_a_packet() {
        let mut ledger = Ledger::new(Moment(17 * LENGTH_MS));
        ledger.offered(17, Party::Flood);
        ledger.offered(17, Party::Flood);
        ledger.admitted(17, Party::Flood);
        ledger.offered(18, Party::Polite);
        let windows = ledger.windows(Moment(18 * LENGTH_MS + 1));
        assert_eq!(windows.len(), 2);
        assert_eq!(windows[0].of(Party::Flood), Count { offered: 2, admitted: 1 });
        assert_eq!(windows[0].of(Party::Flood).refused(), 1);
        assert_eq!(windows[1].of(Party::Polite), Count { offered: 1, admitted: 0 });
        assert_eq!((windows[0].full, windows[1].full), (true, false));
    }

    #[test]
    fn a_sender_late_at_an_edge_spoils_both_windows() {
        let mut ledger = Ledger::new(Moment(17 * LENGTH_MS));
        for window in 17..=19 {
            ledger.offered(window, Party::Prefix);
        }
        ledger.spoiled(17);
        let full: Vec<bool> =
            ledger.windows(Moment(20 * LENGTH_MS)).iter().map(|window| window.full).collect();
        assert_eq!(full, [false, false, true]);
    }
}
