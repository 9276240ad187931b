//! What is limited: from a TOML file, by way of [`Policy::parse`], to a [`Policy`] that is valid by
//! construction. Pure: knows no file, no clock, no kernel.

mod amount;
pub mod capacity;
mod display;
mod document;
mod limits;
mod matches;
mod model;
mod parse;
mod problem;
pub mod report;
mod rule;
pub(crate) mod words;

pub use display::{AppliesTo, Length};
pub use model::{Limit, Match, Mode, Packets, Policy, Rule, RuleName, Unit};
pub use parse::{Checked, MAX_BYTES};
pub use problem::{Problem, Problems};

#[cfg(test)]
mod tests;
