//! The terminal's second screen for a live view: entered, redrawn, and left whatever happens.

use std::io::{self, IsTerminal};

use rustix::termios::tcgetwinsize;

use super::error::CliError;
use super::output::print;

/// Keeps the view on the second screen; dropping it brings the first one back.
pub(super) struct Screen(());

impl Screen {
    /// The second screen, or `None` if standard output is no terminal.
    pub(super) fn enter() -> Result<Option<Self>, CliError> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        print("\x1b[?1049h\x1b[?25l")?;
        Ok(Some(Self(())))
    }

    /// Replaces what is shown, without flicker: as much of it as fits.
    pub(super) fn draw(&self, text: &str) -> Result<(), CliError> {
        let (columns, lines) = size();
        print(&format!("\x1b[H{}\x1b[J", fit(text, columns, lines)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _closed = print("\x1b[?25h\x1b[?1049l");
    }
}

/// Columns and lines of the terminal; 80 × 24 if it doesn't say.
fn size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// The text cut to the screen, each line wiping what it replaces.
fn fit(text: &str, columns: usize, lines: usize) -> String {
    let cut = |line: &str| line.chars().take(columns).collect::<String>() + "\x1b[K";
    // A line break after the last line would scroll the first one away.
    text.lines().take(lines).map(cut).collect::<Vec<_>>().join("\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_terminal_is_not_overrun() {
        assert_eq!(fit("abcdef\ngh\nij\n", 4, 2), "abcd\x1b[K\r\ngh\x1b[K");
    }
}
