//! Words and numbers for people: protocol names, digits in threes, near misses of known words, and
//! foreign text made safe to print.

/// Names that a match may use, with their numbers (IANA's registry of protocol numbers).
pub(super) const PROTOCOLS: [(&str, u8); 9] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("icmpv6", 58),
    ("sctp", 132),
    ("udplite", 136),
];

/// Those whose headers begin with a source and a destination port.
pub(super) const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// The name of a protocol, if it has one here.
pub(super) fn protocol_name(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// Text from the file, quoted, shortened and without control characters: it may end up on a terminal.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", bare(text))
}

/// Like [`quoted`], without the quotes.
pub(super) fn bare(text: &str) -> String {
    const LONGEST: usize = 48;
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Words as `"a", "b" or "c"`.
pub(super) fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.join(""),
    }
}

/// The word that was probably meant.
pub(super) fn nearest<'w>(
    written: &str,
    words: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    let written = written.to_lowercase();
    words
        .into_iter()
        .filter_map(|word| {
            let allowed = if word.len() > 3 { 2 } else { 1 };
            // The difference in length is a lower bound, and keeps huge keys cheap.
            (written.len().abs_diff(word.len()) <= allowed)
                .then(|| (distance(&written, word), word))
                .filter(|(distance, word)| *distance <= allowed && *distance < word.len())
        })
        .min()
        .map(|(_, word)| word)
}

/// Edit distance (Levenshtein): insertions, deletions and replacements of single bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let keys = ["name", "match", "limit", "window", "unit", "mode"];
        assert_eq!(nearest("limits", keys), Some("limit"));
        assert_eq!(nearest("limti", keys), Some("limit"));
        assert_eq!(nearest("Window", keys), Some("window"));
        assert_eq!(nearest("burst", keys), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("tpc", ["tcp", "udp"]), None);
        assert_eq!(nearest("TCP", ["tcp", "udp"]), Some("tcp"));
    }

    #[test]
    fn foreign_text_is_harmless() {
        assert_eq!(quoted("a\u{1b}[31m\"b"), r#""a\u{1b}[31m\"b""#);
        assert_eq!(quoted(&"é".repeat(100)).chars().count(), 51);
    }

    #[test]
    fn digits_come_in_threes() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(4_194_302), "4,194,302");
        assert_eq!(one_of(["a", "b", "c"]), r#""a", "b" or "c""#);
    }
}
