//! What others do while the daemon runs: bypass set, policy file or pins removed. Each is logged when it
//! begins and when it ends, for whoever asks later. Changes nothing.

use std::path::Path;

use limiter_common::layout::Bypass;

use crate::datapath::{Pins, bypass};

/// As it was at the last look.
#[derive(Debug)]
pub(super) struct Noticed {
    bypass: Bypass,
    file_gone: bool,
    pins_gone: bool,
}

impl Noticed {
    /// All well: whatever isn't at the first look is logged.
    pub(super) const fn new() -> Self {
        Self { bypass: Bypass::Off, file_gone: false, pins_gone: false }
    }

    pub(super) fn bypass(&mut self, now: Bypass) {
        let before = bypass::name(std::mem::replace(&mut self.bypass, now));
        match (now, bypass::name(now)) {
            (_, now) if now == before => {}
            (Bypass::Off, _) => tracing::warn!(before, "bypass off: the policy holds again"),
            (_, now) => tracing::warn!(before, "bypass {now}: nothing is refused"),
        }
    }

    pub(super) fn file(&mut self, path: &Path, gone: bool) {
        let path = path.display();
        match (std::mem::replace(&mut self.file_gone, gone), gone) {
            (false, true) => {
                tracing::warn!(%path, "the policy file is gone; its policy holds, but a restart needs the file");
            }
            (true, false) => tracing::info!(%path, "the policy file is back"),
            _ => {}
        }
    }

    pub(super) fn pins(&mut self, problem: Option<&str>) {
        match (std::mem::replace(&mut self.pins_gone, problem.is_some()), problem) {
            (false, Some(problem)) => tracing::error!("{problem}"),
            (true, None) => tracing::info!("the pins are back"),
            _ => {}
        }
    }
}

/// What is wrong with the pins, if anything.
pub(super) fn pins_problem(pins: &Pins) -> Option<String> {
    let (gone, root) = (pins.gone(), pins.root().display());
    let all = gone.contains(&"program") && !pins.in_use();
    let gone = if all { "all of them".to_owned() } else { gone.join(", ") };
    (!gone.is_empty()).then(|| format!("the pins in {root} are gone: {gone}; restart limiter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_that_are_all_gone_are_not_counted_up() {
        let problem = pins_problem(&Pins::new("/nowhere"));
        assert_eq!(problem.unwrap(), "the pins in /nowhere are gone: all of them; restart limiter");
    }
}
