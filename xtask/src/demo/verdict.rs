//! Whether the limiter did its job, and that in words and in JSON. Pure.

use serde_json::{Value, json};

use super::ledger::{PREFIX_LIMIT, Party, SOURCE_LIMIT, Window};
use super::window::LENGTH_MS;

/// A party over its limit must get at least this share of it: limiting isn't starving.
const LEAST_PERCENT: u64 = 95;

/// The outcome of a demo.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// At least one full window, and in every one of them each party got what it should.
    pub(super) ok: bool,
    /// What happened, or each thing that went wrong.
    pub(super) sentences: Vec<String>,
}

/// Judges all full windows.
pub(super) fn judge(windows: &[Window]) -> Verdict {
    let full: Vec<&Window> = windows.iter().filter(|window| window.full).collect();
    if full.is_empty() {
        let sentence = "No window was seen from its start to its end: let it run for at least 20 \
                        seconds, on a machine that isn't overloaded.";
        return Verdict { ok: false, sentences: vec![sentence.into()] };
    }
    let faults: Vec<String> = full.iter().flat_map(|window| faults(window)).collect();
    if faults.is_empty() {
        return Verdict { ok: true, sentences: praise(&full) };
    }
    Verdict { ok: false, sentences: faults }
}

/// Each thing that went wrong in a window.
pub(super) fn faults(window: &Window) -> Vec<String> {
    let at = clock_time(window.index);
    let found = [
        polite_fault(window),
        limit_fault(window, Party::Flood),
        limit_fault(window, Party::Prefix),
    ];
    found.into_iter().flatten().map(|fault| format!("{at}: {fault}")).collect()
}

fn polite_fault(window: &Window) -> Option<String> {
    let count = window.of(Party::Polite);
    if count.offered == 0 {
        return Some("the polite client never got to try.".into());
    }
    if count.admitted == count.offered {
        return None;
    }
    Some(format!(
        "the polite client was served {} times out of {}, though it kept below its limit of {SOURCE_LIMIT}.",
        count.admitted, count.offered
    ))
}

fn limit_fault(window: &Window, party: Party) -> Option<String> {
    let (count, limit) = (window.of(party), party.limit());
    let who = name(party);
    if count.offered <= limit {
        return Some(format!(
            "the {who} offered only {}, too little to meet its limit of {limit}.",
            count.offered
        ));
    }
    if count.admitted > limit {
        return Some(format!("{} packets of the {who} got through, {limit} may.", count.admitted));
    }
    if count.admitted * 100 < limit * LEAST_PERCENT {
        return Some(format!("the {who} got only {} of the {limit} it may have.", count.admitted));
    }
    None
}

fn praise(full: &[&Window]) -> Vec<String> {
    let sum = |party, what: fn(&Window, Party) -> u64| {
        full.iter().map(|window| what(window, party)).sum::<u64>()
    };
    let refused = |window: &Window, party| window.of(party).refused();
    let windows = if full.len() == 1 {
        "one full window".into()
    } else {
        format!("{} full windows", full.len())
    };
    vec![
        format!("In {windows} each limit held, and nobody below a limit was refused."),
        format!(
            "{} unwanted packets ended in the network driver; \
             the polite client was served {} times out of {}.",
            grouped(sum(Party::Flood, refused) + sum(Party::Prefix, refused)),
            sum(Party::Polite, |window, party| window.of(party).admitted),
            sum(Party::Polite, |window, party| window.of(party).offered),
        ),
    ]
}

/// How the table and the sentences call a party.
pub(super) fn name(party: Party) -> &'static str {
    match party {
        Party::Polite => "polite client",
        Party::Flood => "flooder",
        Party::Prefix => "flooding /24",
    }
}

/// The start of a window as a time of day, UTC.
pub(super) fn clock_time(window: u64) -> String {
    let seconds = window * LENGTH_MS / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// A number with commas: 12,345.
pub(super) fn grouped(number: u64) -> String {
    if number < 1_000 {
        return number.to_string();
    }
    format!("{},{:03}", grouped(number / 1_000), number % 1_000)
}

/// The object that `--json` ends with.
pub(super) fn as_json(verdict: &Verdict, windows: &[Window], metrics_url: Option<&str>) -> Value {
    json!({
        "ok": verdict.ok,
        "window_s": LENGTH_MS / 1_000,
        "limit": { "source": SOURCE_LIMIT, "prefix": PREFIX_LIMIT },
        "windows": windows.iter().map(window_json).collect::<Vec<_>>(),
        "metrics_url": metrics_url,
    })
}

fn window_json(window: &Window) -> Value {
    let count = |party| {
        let count = window.of(party);
        json!({ "offered": count.offered, "admitted": count.admitted })
    };
    json!({
        "index": window.index,
        "full": window.full,
        "polite": count(Party::Polite),
        "flood": count(Party::Flood),
        "prefix": count(Party::Prefix),
    })
}

#[cfg(test)]
mod tests {
    use super::super::ledger::tests::window;
    use super::*;

    const GOOD: [(u64, u64); 3] = [(10, 10), (2_000, 20), (1_000, 200)];

    fn fault_of(counts: [(u64, u64); 3]) -> String {
        let verdict = judge(&[window(true, GOOD), window(true, counts)]);
        assert!(!verdict.ok, "{verdict:?}");
        verdict.sentences.join(" ")
    }

    #[test]
    fn good_windows_are_praised_with_their_sums() {
        let verdict = judge(&[window(false, [(1, 0); 3]), window(true, GOOD), window(true, GOOD)]);
        assert!(verdict.ok, "a window that isn't full isn't judged");
        assert_eq!(
            verdict.sentences,
            [
                "In 2 full windows each limit held, and nobody below a limit was refused.",
                "5,560 unwanted packets ended in the network driver; the polite client was served 20 times out of 20.",
            ]
        );
    }

    #[test]
    fn the_edge_of_good_is_95_to_100_percent() {
        assert!(judge(&[window(true, [(10, 10), (2_000, 19), (1_000, 190)])]).ok);
        assert!(
            fault_of([(10, 10), (2_000, 18), (1_000, 200)])
                .contains("flooder got only 18 of the 20")
        );
        assert!(
            fault_of([(10, 10), (2_000, 20), (1_000, 189)]).contains("/24 got only 189 of the 200")
        );
        assert!(
            fault_of([(10, 10), (2_000, 21), (1_000, 200)])
                .contains("21 packets of the flooder got through")
        );
        assert!(
            fault_of([(10, 10), (2_000, 20), (1_000, 201)])
                .contains("201 packets of the flooding /24")
        );
    }

    #[test]
    fn the_polite_client_must_be_served_every_time() {
        assert!(
            fault_of([(10, 9), (2_000, 20), (1_000, 200)]).contains("served 9 times out of 10")
        );
        assert!(fault_of([(0, 0), (2_000, 20), (1_000, 200)]).contains("never got to try"));
    }

    #[test]
    fn a_flood_that_didn_t_flood_proves_nothing() {
        assert!(fault_of([(10, 10), (20, 20), (1_000, 200)]).contains("offered only 20"));
    }

    #[test]
    fn no_full_window_is_no_success() {
        assert!(!judge(&[]).ok);
        assert!(!judge(&[window(false, GOOD)]).ok);
    }

    #[test]
    fn json_has_the_documented_shape() {
        let windows = [window(true, GOOD)];
        let value = as_json(&judge(&windows), &windows, Some("http://127.0.0.1:9184/metrics"));
        let expected = r#"{"limit":{"prefix":200,"source":20},"metrics_url":"http://127.0.0.1:9184/metrics","ok":true,"window_s":10,"windows":[{"flood":{"admitted":20,"offered":2000},"full":true,"index":170000,"polite":{"admitted":10,"offered":10},"prefix":{"admitted":200,"offered":1000}}]}"#;
        assert_eq!(value, serde_json::from_str::<Value>(expected).unwrap());
    }

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(clock_time(8_640 * 20_000 + 366), "01:01:00");
    }
}
