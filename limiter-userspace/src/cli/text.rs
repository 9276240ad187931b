//! Numbers, times and tables for people. Pure: values in, text out.

pub(super) use crate::policy::words::grouped as number;

/// `1,234` packets; bytes shorter and rounded down, `20.1 MB`.
pub(super) fn amount(value: u64, unit: &str) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(size, _)| value >= *size) {
        Some((size, name)) if unit == "bytes" => {
            let tenths = value / (size / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        _ if unit == "bytes" => format!("{value} B"),
        _ => number(value),
    }
}

/// `20`, or `unlimited`.
pub(super) fn limit(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), number)
}

/// `1.2 %` of the whole, rounded; `0.0 %` of nothing.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let whole = u128::from(whole.max(1));
    let tenths = (u128::from(part) * 1000 + whole / 2) / whole;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// `24.0 MiB`.
pub(super) fn memory(bytes: u64) -> String {
    let tenths = u128::from(bytes) * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// The two largest units: `3d 4h`, `2h 13m`, `12m 5s`, `9s`.
pub(super) fn span(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {seconds}s"),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// `3.2 s`.
pub(super) fn moment(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1000, milliseconds / 100 % 10)
}

/// `[####......]`: how much of a limit is used.
pub(super) fn bar(used: u64, limit: Option<u64>) -> String {
    const WIDTH: usize = 10;
    let Some(limit) = limit else {
        return format!("[{:WIDTH$}]", "");
    };
    let full = u128::from(used.min(limit)) * WIDTH as u128 / u128::from(limit.max(1));
    let full = usize::try_from(full).unwrap_or(WIDTH);
    format!("[{}{}]", "#".repeat(full), ".".repeat(WIDTH - full))
}

/// The text without what could steer a terminal: names, owners and reasons are others' words.
pub(super) fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// As [`tame`], but lines stay lines.
pub(super) fn tame_lines(text: &str) -> String {
    text.lines().map(tame).collect::<Vec<_>>().join("\n")
}

/// Which side a column leans to.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
}

/// No column is filled up further than this.
const WIDEST: usize = 1000;

/// Columns under headings, as wide as they must be, two spaces apart. The text is tamed.
pub(super) fn table<const N: usize>(
    head: [(&str, Side); N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|c| tame(&c))).collect();
    rows.insert(0, head.map(|(name, _)| name.to_owned()));
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(head).enumerate().map(|(column, (cell, (_, side)))| {
            let width = rows.iter().map(|row| row[column].chars().count()).max();
            // Formatting panics at a width that 16 bits can't hold.
            let width = width.unwrap_or(0).min(WIDEST);
            match side {
                Side::Left => format!("{cell:<width$}"),
                Side::Right => format!("{cell:>width$}"),
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_any_length_is_printed() {
        let long = "x".repeat(100_000);
        let printed =
            table([("A", Side::Left), ("B", Side::Right)], [[long.clone(), long.clone()]]);
        assert_eq!(printed.matches(&long).count(), 2);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1,000");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn shares_never_overflow_or_divide_by_nothing() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(2, 3), "66.7 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
        assert_eq!(memory(24 << 20), "24.0 MiB");
    }

    #[test]
    fn bytes_are_short_and_packets_exact() {
        assert_eq!(amount(20_199_999, "bytes"), "20.1 MB");
        assert_eq!(amount(999, "bytes"), "999 B");
        assert_eq!(amount(1_000, "bytes"), "1.0 kB");
        assert_eq!(amount(u64::MAX, "bytes"), "18446744.0 TB");
        assert_eq!(amount(1_234_567, "packets"), "1,234,567");
    }

    #[test]
    fn times_keep_two_units() {
        assert_eq!(span(9), "9s");
        assert_eq!(span(725), "12m 5s");
        assert_eq!(span(7_980), "2h 13m");
        assert_eq!(span(273_600), "3d 4h");
        assert_eq!(moment(3_250), "3.2 s");
    }

    #[test]
    fn a_bar_shows_the_share_of_the_limit() {
        assert_eq!(bar(8, Some(20)), "[####......]");
        assert_eq!(bar(19, Some(20)), "[#########.]");
        assert_eq!(bar(30, Some(20)), "[##########]");
        assert_eq!(bar(0, Some(0)), "[..........]");
        assert_eq!(bar(5, None), "[          ]");
    }

    #[test]
    fn others_words_cannot_steer_the_terminal() {
        assert_eq!(tame("a\x1b[2Jb\nc"), "a?[2Jb?c");
        assert_eq!(tame_lines("a\x1bb\nc"), "a?b\nc");
    }

    #[test]
    fn columns_line_up() {
        let head = [("KEY", Side::Left), ("N", Side::Right), ("NOTE", Side::Left)];
        let rows =
            [["a".into(), "100".into(), String::new()], ["bbbb".into(), "1".into(), "x".into()]];
        assert_eq!(table(head, rows), "KEY     N  NOTE\na     100\nbbbb    1  x\n");
    }
}
