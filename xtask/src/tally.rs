//! What a test runner said at its end, as numbers: cargo test, cargo-nextest, and our own line.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// The numbers of a summary line of cargo test or nextest, if it is one.
    ///
    /// What nextest calls skipped are tests that a filter left out: not counted.
    pub(crate) fn of_runner(line: &str) -> Option<Self> {
        // nextest shows a failed test's own output, indented: what that sums up is counted already.
        if let Some(rest) = line.strip_prefix("test result: ") {
            return Some(Self::of(rest, "ignored"));
        }
        let rest = line.trim().strip_prefix("Summary [")?;
        Some(Self { skipped: 0, ..Self::of(rest.split_once(" run: ")?.1, "skipped") })
    }

    /// The numbers of the plain line that ends `cargo xtask test`, if it is one.
    pub(crate) fn of_total(line: &str) -> Option<Self> {
        let tally = Self::of(line, "skipped");
        (tally.to_string() == line.trim()).then_some(tally)
    }

    /// Counts tests that returned early as what they are.
    pub(crate) fn move_to_skipped(&mut self, tests: u64) {
        self.passed = self.passed.saturating_sub(tests);
        self.skipped += tests;
    }

    fn of(text: &str, skipped: &str) -> Self {
        let count = |word: &str| {
            let words: Vec<_> =
                text.split([' ', ',', ';', '(']).filter(|w| !w.is_empty()).collect();
            let found = words.windows(2).find(|pair| pair[1] == word);
            found.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
        };
        // nextest lists tests that ran out of time apart from those that failed.
        let failed = count("failed") + count("timed");
        Self { passed: count("passed"), failed, skipped: count(skipped) }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally { passed, failed, skipped }
    }

    #[test]
    fn a_failed_tests_own_summary_counts_once() {
        let shown =
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out";
        assert_eq!(Tally::of_runner(shown), None);
    }

    #[test]
    fn summary_lines_of_both_runners_are_read() {
        let rows = [
            (
                "test result: FAILED. 5 passed; 1 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.01s",
                tally(5, 1, 2),
            ),
            ("     Summary [   0.005s] 5 tests run: 5 passed, 0 skipped", tally(5, 0, 0)),
            (
                "     Summary [  12.5s] 7/9 tests run: 4 passed (1 slow), 2 failed, 1 timed out, 3 skipped",
                tally(4, 3, 0),
            ),
            ("     Summary [   0.1s] 1 test run: 1 passed, 8 skipped", tally(1, 0, 0)),
        ];
        for (line, expected) in rows {
            assert_eq!(Tally::of_runner(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_lines_are_not_summaries() {
        for line in ["test a ... ok", "5 passed", "    PASS [ 0.1s] xtask tally", ""] {
            assert_eq!(Tally::of_runner(line), None, "{line}");
            assert_eq!(Tally::of_total(line), None, "{line}");
        }
    }

    #[test]
    fn the_plain_total_reads_back() {
        let line = tally(12, 0, 1).to_string();
        assert_eq!(line, "12 passed, 0 failed, 1 skipped");
        assert_eq!(Tally::of_total(&line), Some(tally(12, 0, 1)));
    }
}
