//! Colour for a terminal, none for a pipe or where `NO_COLOR` is set.

use std::io::IsTerminal as _;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
}

/// Whether inks are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    colored: bool,
}

impl Style {
    #[cfg(test)]
    pub(super) const PLAIN: Self = Self { colored: false };
    #[cfg(test)]
    pub(super) const COLORED: Self = Self { colored: true };

    /// What suits this process's stdout.
    pub(super) fn of_stdout() -> Self {
        let colored = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colored }
    }

    pub(super) fn paint(self, ink: Ink, text: &str) -> String {
        if self.colored { format!("\x1b[{}m{text}\x1b[0m", ink as u8) } else { text.into() }
    }
}
