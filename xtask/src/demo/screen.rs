//! Puts the table on stdout: on a terminal the running window is redrawn in place, in a pipe each
//! window is printed once, when it is over.

use std::io::{IsTerminal as _, Stdout, Write as _};

use anyhow::{Context as _, Result};

use super::ledger::Window;
use super::style::Style;
use super::table::{State, block, footer};
use super::window::{Moment, is_over};

/// Stdout, and what of it may still be drawn over.
#[derive(Debug)]
pub(super) struct Screen {
    out: Stdout,
    style: Style,
    live: bool,
    /// Windows printed for good.
    settled: usize,
    /// Lines of the running window.
    loose_lines: usize,
}

impl Screen {
    pub(super) fn new(style: Style) -> Self {
        let out = std::io::stdout();
        let live = out.is_terminal();
        Self { out, style, live, settled: 0, loose_lines: 0 }
    }

    /// Prints text that stays.
    pub(super) fn print(&mut self, text: &str) -> Result<()> {
        self.draw(text, "")
    }

    /// Prints windows that are over, and on a terminal the running one.
    pub(super) fn show(
        &mut self,
        windows: &[Window],
        now: Moment,
        seconds_left: u64,
    ) -> Result<()> {
        let fixed = self.newly_over(windows, now);
        if self.live {
            let running = windows.get(self.settled);
            let running = running.map(|window| block(self.style, window, State::Now));
            return self
                .draw(&fixed, &(running.unwrap_or_default() + &footer(self.style, seconds_left)));
        }
        if fixed.is_empty() { Ok(()) } else { self.draw(&fixed, "") }
    }

    /// Prints all that is left, for good.
    pub(super) fn finish(&mut self, windows: &[Window]) -> Result<()> {
        let fixed = self.newly_over(windows, Moment(u64::MAX));
        self.draw(&fixed, "")
    }

    fn newly_over(&mut self, windows: &[Window], now: Moment) -> String {
        let mut text = String::new();
        while let Some(window) =
            windows.get(self.settled).filter(|window| is_over(window.index, now))
        {
            let state = if window.full { State::Judged } else { State::Partial };
            text += &block(self.style, window, state);
            self.settled += 1;
        }
        text
    }

    /// Draws over what was loose, in one write, so that nothing flickers.
    fn draw(&mut self, fixed: &str, loose: &str) -> Result<()> {
        let text = frame(self.loose_lines, fixed, loose);
        self.loose_lines = loose.lines().count();
        let written = self.out.write_all(text.as_bytes());
        written.and_then(|()| self.out.flush()).context("can't write to stdout")
    }
}

/// What takes the place of this many lines.
fn frame(lines: usize, fixed: &str, loose: &str) -> String {
    let back = if lines == 0 { String::new() } else { format!("\x1b[{lines}F\x1b[J") };
    // A line that a narrow terminal breaks in two would spoil the count of lines.
    let loose = if loose.is_empty() { String::new() } else { format!("\x1b[?7l{loose}\x1b[?7h") };
    back + fixed + &loose
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_a_pipe_has_no_escapes() {
        assert_eq!(frame(0, "a window\n", ""), "a window\n");
    }

    #[test]
    fn the_running_window_is_drawn_over_line_by_line() {
        assert_eq!(frame(0, "", "one\ntwo\n"), "\x1b[?7lone\ntwo\n\x1b[?7h");
        assert_eq!(frame(2, "over\n", "next\n"), "\x1b[2F\x1b[Jover\n\x1b[?7lnext\n\x1b[?7h");
        assert_eq!(frame(2, "the end\n", ""), "\x1b[2F\x1b[Jthe end\n");
    }
}
