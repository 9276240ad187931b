//! A policy's parts in the words of its file, for `explain`, `check` and logs.

use std::fmt;

use limiter_common::clock::WindowLength;

use super::model::{Limit, Match, Mode, Packets, Rule, RuleName, Unit};
use super::words::protocol_name;

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packets => "packets",
            Self::Bytes => "bytes",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finite(amount) => amount.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.protocol, self.protocol.and_then(protocol_name)) {
            (_, Some(name)) => f.write_str(name)?,
            (Some(number), None) => write!(f, "protocol {number}")?,
            (None, None) => f.write_str("any protocol")?,
        }
        if self.packets == Packets::TcpSyn {
            f.write_str(", tcp-syn packets")?;
        }
        let plural = match self.ports.as_slice() {
            [] => return Ok(()),
            [only] if only.start() == only.end() => "",
            _ => "s",
        };
        write!(f, ", port{plural} ")?;
        for (place, range) in self.ports.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            let (start, end) = (range.start(), range.end());
            if start == end {
                write!(f, "{comma}{start}")?;
            } else {
                write!(f, "{comma}{start}-{end}")?;
            }
        }
        Ok(())
    }
}

/// What a rule applies to: its matches, joined by `or`.
pub struct AppliesTo<'r>(pub &'r Rule);

impl fmt::Display for AppliesTo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, condition) in self.0.matches().iter().enumerate() {
            let or = if place == 0 { "" } else { "; or " };
            write!(f, "{or}{condition}")?;
        }
        Ok(())
    }
}

/// A window's length as the file would say it: `10s`, `1500ms`.
pub struct Length(pub WindowLength);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticks = self.0.ticks();
        let (number, unit) = match ticks {
            _ if ticks.is_multiple_of(36_000) => (ticks / 36_000, "h"),
            _ if ticks.is_multiple_of(600) => (ticks / 600, "m"),
            _ if ticks.is_multiple_of(10) => (ticks / 10, "s"),
            _ => (ticks * 100, "ms"),
        };
        write!(f, "{number}{unit}")
    }
}
