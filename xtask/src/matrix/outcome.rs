//! What became of one kernel: how a guest's run is judged, and how that is told to people and programs.
//! Boots nothing.

use std::fs;
use std::path::Path;

use super::machine::{CONSOLE, Run};
use super::{Kernel, Wanted};
use crate::tally::Tally;

/// What became of one kernel.
pub(super) struct Outcome {
    pub(super) end: End,
    /// In words.
    pub(super) got: String,
    pub(super) tests: Tally,
    /// What its verifier looked at, of the 1,000,000 that it allows.
    pub(super) instructions: Option<u32>,
    pub(super) seconds: f32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    AsWanted,
    Otherwise,
    /// There was no kernel to boot.
    NoKernel,
}

/// A kernel, what became of it, and the word for that.
pub(super) type Row = (&'static Kernel, Outcome, &'static str);

impl Outcome {
    pub(super) fn new(end: End, got: impl Into<String>) -> Self {
        Self { end, got: got.into(), tests: Tally::default(), instructions: None, seconds: 0.0 }
    }
}

pub(super) fn judge(wanted: Wanted, run: &Run) -> Outcome {
    let Some(status) = run.status else {
        return Outcome::new(End::Otherwise, "no verdict: it crashed, hung or ran out of time");
    };
    let tests = run.console.lines().rev().find_map(Tally::of_runner).unwrap_or_default();
    let instructions = run.console.lines().find_map(instructions);
    let (end, got) = match wanted {
        Wanted::Passes if status == 0 && tests.passed > 0 && tests.failed == 0 => {
            let verified = instructions.map_or("unknown".to_owned(), |number| number.to_string());
            (End::AsWanted, format!("{} tests, {verified} instructions", tests.passed))
        }
        Wanted::Refusal(words) if status != 0 && run.console.contains(words) => {
            (End::AsWanted, format!("refused: {words}"))
        }
        _ => (End::Otherwise, format!("exit status {status}, {tests}")),
    };
    Outcome { tests, instructions, ..Outcome::new(end, got) }
}

/// The number in a line that one of the kernel tests prints.
fn instructions(line: &str) -> Option<u32> {
    line.strip_prefix("verified: ")?.strip_suffix(" instructions")?.parse().ok()
}

/// What comes from a suite that moves, or can't be had where nobody insists, is no failure.
pub(super) fn word(kernel: &Kernel, end: End, strict: bool) -> &'static str {
    match end {
        End::AsWanted => "ok",
        End::Otherwise if kernel.moves => "warned",
        End::Otherwise => "FAILED",
        End::NoKernel if strict && !kernel.moves => "FAILED",
        End::NoKernel => "skipped",
    }
}

pub(super) fn tally(rows: &[Row]) -> Tally {
    let count =
        |counted: &[&str]| rows.iter().filter(|(_, _, word)| counted.contains(word)).count() as u64;
    Tally {
        passed: count(&["ok"]),
        failed: count(&["FAILED"]),
        skipped: count(&["warned", "skipped"]),
    }
}

/// For people, on stderr: stdout may be for machines.
pub(super) fn report(kernel: &Kernel, outcome: &Outcome, word: &str) {
    if outcome.end == End::Otherwise {
        show_console(&kernel.folder());
    }
    let (name, release, wanted) = (kernel.name, kernel.release(), kernel.wanted.name());
    let Outcome { got, seconds, .. } = outcome;
    eprintln!("{word:<7} {name:<7} {release:<30} wanted: {wanted:<8} got: {got}; {seconds:.1} s");
}

/// By kernel. Fields only ever grow.
pub(super) fn json(rows: &[Row]) -> serde_json::Value {
    let value = |(kernel, outcome, word): &Row| {
        let value = serde_json::json!({
            "release": kernel.release(),
            "wanted": kernel.wanted.name(),
            "outcome": word.to_lowercase(),
            "got": outcome.got,
            "passed": outcome.tests.passed,
            "failed": outcome.tests.failed,
            "instructions": outcome.instructions,
            "seconds": outcome.seconds.round(),
        });
        (kernel.name.to_owned(), value)
    };
    rows.iter().map(value).collect::<serde_json::Map<_, _>>().into()
}

/// The end of what the guest printed, and where the whole of it is.
fn show_console(folder: &Path) {
    let path = folder.join(CONSOLE);
    let Ok(bytes) = fs::read(&path) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(30)..] {
        eprintln!("    {line}");
    }
    eprintln!("    (all of it: {})", path.display());
}

#[cfg(test)]
mod tests {
    use super::super::KERNELS;
    use super::*;

    fn run(status: Option<u8>, console: &str) -> Run {
        Run { status, console: console.into() }
    }

    fn is_as_wanted(wanted: Wanted, status: Option<u8>, console: &str) -> bool {
        judge(wanted, &run(status, console)).end == End::AsWanted
    }

    #[test]
    fn a_pass_needs_a_verdict_and_tests_that_ran() {
        let good = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert!(is_as_wanted(Wanted::Passes, Some(0), good));
        assert!(!is_as_wanted(Wanted::Passes, None, good));
        assert!(!is_as_wanted(Wanted::Passes, Some(101), good));
        assert!(!is_as_wanted(Wanted::Passes, Some(0), none));
    }

    #[test]
    fn what_the_verifier_did_is_read_from_the_tests() {
        let console = "verified: Some(9) instructions\nverified: 46146 instructions\n\
                       test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let outcome = judge(Wanted::Passes, &run(Some(0), console));
        assert_eq!(outcome.instructions, Some(46_146));
        assert_eq!(outcome.got, "3 tests, 46146 instructions");
    }

    #[test]
    fn what_moves_only_warns() {
        let [oldest, newest] = ["6.1", "newest"]
            .map(|name| KERNELS.iter().find(|kernel| kernel.name == name).unwrap());
        assert_eq!(word(oldest, End::Otherwise, false), "FAILED");
        assert_eq!(word(newest, End::Otherwise, true), "warned");
        assert_eq!(word(oldest, End::NoKernel, true), "FAILED");
        assert_eq!(word(oldest, End::NoKernel, false), "skipped");
        assert_eq!(word(newest, End::NoKernel, true), "skipped");
    }

    #[test]
    fn a_refusal_must_be_for_the_known_reason() {
        let wanted = Wanted::Refusal("reserved fields");
        assert!(is_as_wanted(wanted, Some(101), "BPF_STX uses reserved fields"));
        assert!(!is_as_wanted(wanted, Some(101), "out of memory"));
        assert!(!is_as_wanted(wanted, Some(0), "BPF_STX uses reserved fields"));
    }
}
