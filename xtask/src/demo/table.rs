//! What a person sees: the stage, a block of three rows per window, the verdict. Pure: values in,
//! text out, at most 79 columns wide.

use super::ledger::{PREFIX_LIMIT, Party, SOURCE_LIMIT, Window};
use super::style::{Ink, Style};
use super::verdict::{Verdict, clock_time, faults, grouped, name};

const BAR: u64 = 16;

/// The parties and the way their packets take.
pub(super) fn stage(style: Style, metrics_url: Option<&str>) -> String {
    let limits =
        format!("{SOURCE_LIMIT} per 10 s from a source, {PREFIX_LIMIT} per 10 s from a /24");
    let title = style.paint(Ink::Bold, "limiter: real packets through the real XDP program");
    let (box_, metrics) = match metrics_url {
        Some(url) => (
            "▶ limiter ─▶ host",
            format!("metrics, while this runs: {}", style.paint(Ink::Bold, url)),
        ),
        None => {
            ("▶ host", style.paint(Ink::Red, "limiter is off: this is what it is there to prevent"))
        }
    };
    format!(
        "\n  {title}\n  {limits}: TCP SYN and UDP\n\n\
         \x20   polite client  192.0.2.7         1 TCP connection/s  ─┐\n\
         \x20   flooder        198.51.100.66     200 UDP packets/s   ─┼─{box_}\n\
         \x20   flooding /24   203.0.113.1–.100  100 UDP packets/s   ─┘\n\n  {metrics}\n\n{}\n",
        style.paint(
            Ink::Dim,
            "  window, UTC               offered  admitted  refused  limit  admitted / limit"
        )
    )
}

/// What a window's left column says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is running.
    Now,
    /// It is over and counts.
    Judged,
    /// It is over, but was not seen whole.
    Partial,
}

/// The three rows of a window.
pub(super) fn block(style: Style, window: &Window, state: State) -> String {
    let (ink, word) = match state {
        State::Now => (Ink::Bold, "now"),
        State::Partial => (Ink::Dim, "partial"),
        State::Judged if faults(window).is_empty() => (Ink::Green, "✔ held"),
        State::Judged => (Ink::Red, "✘ failed"),
    };
    let left =
        [(Ink::Bold, clock_time(window.index)), (ink, word.into()), (Ink::Dim, String::new())];
    let rows = Party::ALL.into_iter().zip(left).map(|(party, (ink, left))| {
        format!("  {}  {}\n", style.paint(ink, &format!("{left:<8}")), row(style, window, party))
    });
    rows.collect::<String>() + "\n"
}

fn row(style: Style, window: &Window, party: Party) -> String {
    let (count, limit) = (window.of(party), party.limit());
    let refused = format!("{:>9}", grouped(count.refused()));
    let refused = if count.refused() > 0 { style.paint(Ink::Red, &refused) } else { refused };
    format!(
        "{:<13}{:>9}{:>10}{refused}{limit:>7}  {}",
        name(party),
        grouped(count.offered),
        grouped(count.admitted),
        bar(style, count.admitted, limit),
    )
}

fn bar(style: Style, admitted: u64, limit: u64) -> String {
    let filled = (admitted * BAR).div_ceil(limit).min(BAR);
    let ink = match admitted {
        over if over > limit => Ink::Red,
        full if full == limit => Ink::Yellow,
        _ => Ink::Green,
    };
    let blocks = |glyph: &str, count| glyph.repeat(usize::try_from(count).unwrap_or(0));
    style.paint(ink, &blocks("█", filled)) + &style.paint(Ink::Dim, &blocks("░", BAR - filled))
}

/// The line under the running window.
pub(super) fn footer(style: Style, seconds_left: u64) -> String {
    style.paint(Ink::Dim, &format!("  {seconds_left} s left; Ctrl-C ends it early and cleans up"))
        + "\n"
}

/// The verdict in words.
pub(super) fn closing(style: Style, verdict: &Verdict) -> String {
    let (ink, mark) = if verdict.ok { (Ink::Green, "✔") } else { (Ink::Red, "✘") };
    let lines: Vec<String> =
        verdict.sentences.iter().flat_map(|sentence| wrapped(sentence)).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let mark = if number == 0 { style.paint(ink, mark) } else { " ".into() };
        text += &format!("  {mark} {line}\n");
    }
    text + "\n"
}

/// Breaks a sentence into lines of at most 75 characters.
fn wrapped(sentence: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split_whitespace() {
        let fits =
            lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() <= 75);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if fits => *line += &format!(" {word}"),
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::ledger::tests::window;
    use super::*;

    const PLAIN: Style = Style::PLAIN;

    #[test]
    fn a_window_reads_like_this() {
        let shown = window(true, [(10, 10), (2_000, 20), (1_000, 200)]);
        let expected = [
            "  16:13:20  polite client       10        10        0     20  ████████░░░░░░░░",
            "  ✔ held    flooder          2,000        20    1,980     20  ████████████████",
            "            flooding /24     1,000       200      800    200  ████████████████",
            "",
        ];
        assert_eq!(block(PLAIN, &shown, State::Judged).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn everything_fits_a_terminal_of_80_columns() {
        let wide = window(true, [(9_999, 9_999), (99_999, 99_999), (99_999, 99_999)]);
        let verdict = Verdict { ok: false, sentences: faults(&wide) };
        let url = Some("http://127.0.0.1:65535/metrics");
        let all = stage(PLAIN, url)
            + &block(PLAIN, &wide, State::Judged)
            + &footer(PLAIN, 30)
            + &closing(PLAIN, &verdict);
        for line in all.lines() {
            assert!(line.chars().count() < 80, "{line}");
        }
    }

    #[test]
    fn a_bar_is_full_only_at_its_limit() {
        assert_eq!(bar(PLAIN, 0, 20), "░░░░░░░░░░░░░░░░");
        assert_eq!(bar(PLAIN, 20, 20), "████████████████");
        assert_eq!(bar(PLAIN, 2_000, 20), "████████████████");
        assert_eq!(bar(PLAIN, 1, 200), "█░░░░░░░░░░░░░░░");
    }

    #[test]
    fn colours_are_only_where_they_are_wanted() {
        let failed = window(true, [(10, 0), (2_000, 21), (1_000, 200)]);
        assert!(!block(PLAIN, &failed, State::Judged).contains('\x1b'));
        assert!(block(Style::COLORED, &failed, State::Judged).contains("\x1b[31m✘ failed"));
    }
}
