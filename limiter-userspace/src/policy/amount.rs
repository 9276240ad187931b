//! Amounts and lengths of time as people write them: `"50MiB"`, `"2k"`, `"100ms"`. Integers only:
//! what is written is what is meant.

use limiter_common::clock::WindowLength;

use super::model::Unit;
use super::words::quoted;

/// Why a text is no amount: reason and fix.
pub(super) type Unreadable = (String, String);

const PLAIN: &[(&str, u64)] = &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
const BYTES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// An amount with an optional unit. Beyond 64 bits it is as good as the largest.
pub(super) fn amount(text: &str, unit: Unit) -> Result<u64, Unreadable> {
    let (digits, suffix) = split(text);
    let in_bytes = scale(BYTES, suffix);
    let scale = match (unit, scale(PLAIN, suffix), in_bytes) {
        (_, Some(scale), _) | (Unit::Bytes, None, Some(scale)) => scale,
        (Unit::Packets, None, Some(_)) => {
            let reason = format!("{} is in bytes, but this rule counts packets", quoted(text));
            return Err((reason, "add unit = \"bytes\" to the rule".into()));
        }
        _ => {
            return Err((format!("{} is no amount", quoted(text)), amount_fix(suffix, unit)));
        }
    };
    let Some(number) = whole(digits) else {
        return Err((format!("{} is no whole amount", quoted(text)), amount_fix("", unit)));
    };
    Ok(number.saturating_mul(scale))
}

fn amount_fix(suffix: &str, unit: Unit) -> String {
    if suffix == "KB" {
        return "write kB for 1,000 bytes or KiB for 1,024".into();
    }
    if suffix.contains('/') || suffix.ends_with("ps") {
        return "limits are amounts per window: leave the rate's \"per\" out".into();
    }
    match unit {
        Unit::Packets => "write a whole number, as 2000 or \"2k\" (k, M, G)".into(),
        Unit::Bytes => {
            "write a whole number, as 2000 or \"50MB\" (B, kB, MB, GB, KiB, MiB, GiB)".into()
        }
    }
}

/// A window's length.
pub(super) fn window(text: &str) -> Result<WindowLength, Unreadable> {
    const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    const TICK_MS: u64 = 100;
    let (digits, suffix) = split(text);
    let (Some(scale), Some(number)) = (scale(UNITS, suffix), whole(digits)) else {
        let fix = "write a whole number and a unit, as \"10s\" (ms, s, m, h)";
        return Err((format!("{} is no length of time", quoted(text)), fix.into()));
    };
    let ms = number.saturating_mul(scale);
    let ticks = u32::try_from(ms / TICK_MS).ok().and_then(WindowLength::from_ticks);
    match ticks {
        Some(window) if ms.is_multiple_of(TICK_MS) => Ok(window),
        Some(_) => {
            let (below, above) = (ms / TICK_MS * TICK_MS, ms.next_multiple_of(TICK_MS));
            let reason = format!("{} is no multiple of 100ms", quoted(text));
            Err((reason, format!("write \"{below}ms\" or \"{above}ms\"")))
        }
        None => {
            let reason = format!("{} is out of range", quoted(text));
            Err((reason, "write a length from \"100ms\" to \"1h\"".into()))
        }
    }
}

/// Digits (with `_` between them, as in TOML) and what follows.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    (digits, suffix.trim_start())
}

fn scale(units: &[(&str, u64)], suffix: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == suffix).map(|(_, scale)| *scale)
}

/// A number of digits only; beyond 64 bits it is as good as the largest.
fn whole(digits: &str) -> Option<u64> {
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    if digits.is_empty() {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_amounts() {
        for (text, unit, value) in [
            ("20", Unit::Packets, 20),
            ("2k", Unit::Packets, 2_000),
            ("1_000", Unit::Packets, 1_000),
            ("50MB", Unit::Bytes, 50_000_000),
            ("50 MiB", Unit::Bytes, 50 << 20),
            ("1GiB", Unit::Bytes, 1 << 30),
            ("99999999999999999999999G", Unit::Bytes, u64::MAX),
        ] {
            assert_eq!(amount(text, unit), Ok(value), "{text}");
        }
    }

    #[test]
    fn refuses_what_could_mean_two_things() {
        for (text, unit, part) in [
            ("50MB", Unit::Packets, "unit = \"bytes\""),
            ("50KB", Unit::Bytes, "KiB for 1,024"),
            ("5MB/s", Unit::Bytes, "per window"),
            ("5Mbps", Unit::Bytes, "per window"),
            ("1.5MB", Unit::Bytes, "whole number"),
            ("-5", Unit::Packets, "whole number"),
            ("", Unit::Packets, "whole number"),
            ("k", Unit::Packets, "whole number"),
        ] {
            let (reason, fix) = amount(text, unit).unwrap_err();
            assert!(fix.contains(part), "{text}: {reason}; {fix}");
        }
    }

    #[test]
    fn reads_windows() {
        for (text, ticks) in
            [("100ms", 1), ("1500ms", 15), ("10s", 100), ("1m", 600), ("1h", 36_000)]
        {
            assert_eq!(window(text).map(WindowLength::ticks), Ok(ticks), "{text}");
        }
        for (text, part) in [
            ("150ms", "\"100ms\" or \"200ms\""),
            ("50ms", "from \"100ms\""),
            ("0s", "from \"100ms\""),
            ("2h", "to \"1h\""),
            ("99999999999999999999h", "to \"1h\""),
            ("1.5s", "a whole number and a unit"),
            ("10", "a whole number and a unit"),
            ("10 sec", "a whole number and a unit"),
        ] {
            let (reason, fix) = window(text).unwrap_err();
            assert!(fix.contains(part), "{text}: {reason}; {fix}");
        }
    }
}
