//! Any text as a policy file: read or refused in full, in a second, with every mistake told once and in
//! its line; and what is taken means in the kernel's tables what it says.

mod compiled;
mod valid;

use std::time::Duration;

use limiter_userspace::policy::report::{Report, TableSize};
use limiter_userspace::policy::{Checked, MAX_BYTES, Policy, Problem, Problems};
use rustix::time::{ClockId, clock_gettime};
use toml::de::DeTable;

/// Longer than anybody waits, whatever is in the file.
const PATIENCE: Duration = Duration::from_secs(1);
const BUCKETS: u32 = 1 << 10;

/// One mistake, in a rule of its own.
const MISTAKE: &str = r#"
[[rule]]
name = "one-mistake-more"
match = [{ protocol = "tcp" }]
limit = { source = 20 }
window = "10 parsecs"
"#;

/// Reads the text, and compiles what it says.
///
/// # Panics
/// If anything is wrong with what comes of it.
pub fn run(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let read = in_time("reading", || Policy::parse(&text));
    match &read {
        Ok(checked) => {
            told_well(&text, &checked.warnings);
            valid::check(&checked.policy);
            let compiled = in_time("compiling", || compiled::check(&checked.policy));
            if let Some(snapshot) = compiled {
                let size = TableSize { buckets: BUCKETS, cpus: 2, sources: None };
                in_time("the report", || Report::new(&checked.policy, &snapshot.rules, size));
            }
        }
        Err(problems) => {
            assert!(problems.count() > 0, "refused for no reason");
            assert!(problems.list().len() <= problems.count());
            told_well(&text, problems.list());
        }
    }
    a_comment_above_only_moves_lines(&text, &read);
    one_mistake_more_is_told(&text, &read);
}

/// The work's own time: what others do on this machine doesn't count.
fn in_time<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let time = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let before = time();
    let done = work();
    let took = time().saturating_sub(before);
    assert!(took <= PATIENCE, "{what} took {took:?}");
    done
}

/// In order, each in a line of the file, with a reason and a fix, and harmless on a terminal.
fn told_well(text: &str, problems: &[Problem]) {
    let lines = text.split('\n').count();
    assert!(problems.is_sorted_by_key(|problem| problem.line), "{problems:?}");
    for problem in problems {
        assert!((1..=lines).contains(&problem.line), "{lines} lines: {problem:?}");
        assert!(!problem.reason.is_empty() && !problem.fix.is_empty(), "{problem:?}");
        let shown = problem.to_string();
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
}

/// But for what is missing from the file as a whole, which is told in its first line.
fn a_comment_above_only_moves_lines(text: &str, read: &Result<Checked, Problems>) {
    // A byte order mark may stand nowhere else than first.
    if text.len() >= MAX_BYTES - 1 || text.starts_with('\u{feff}') {
        return;
    }
    let below = Policy::parse(&format!("#\n{text}"));
    match (read, &below) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.policy, other.policy);
            assert_eq!(in_rules(&one.warnings, 1), in_rules(&other.warnings, 0));
        }
        (Err(one), Err(other)) => {
            assert_eq!(one.count(), other.count());
            assert_eq!(in_rules(one.list(), 1), in_rules(other.list(), 0));
        }
        _ => panic!("{read:?}, but with a comment above {below:?}"),
    }
}

/// Where those stand that are in rules, so many lines further down.
fn in_rules(problems: &[Problem], down: usize) -> Vec<(&str, &str, usize)> {
    let in_rules = problems.iter().filter_map(|problem| Some((problem.rule.as_deref()?, problem)));
    in_rules.map(|(rule, problem)| (rule, problem.key.as_str(), problem.line + down)).collect()
}

fn one_mistake_more_is_told(text: &str, read: &Result<Checked, Problems>) {
    let more = format!("{text}{MISTAKE}");
    let taken = text.contains("one-mistake-more") || more.len() > MAX_BYTES;
    if taken || !has_room_for_a_rule(text) || DeTable::parse(&more).is_err() {
        return;
    }
    let before = read.as_ref().map_or_else(Problems::count, |_| 0);
    match Policy::parse(&more) {
        Ok(_) => panic!("a window of 10 parsecs was taken"),
        Err(problems) => assert_eq!(problems.count(), before + 1, "{problems}"),
    }
}

/// Whether each mistake in a rule is looked for: not in text that isn't TOML, nor in one of another
/// schema, nor behind the last rule that a policy may have.
fn has_room_for_a_rule(text: &str) -> bool {
    let Ok(document) = DeTable::parse(text) else {
        return false;
    };
    let schema = document.get_ref().get("schema").and_then(|node| node.get_ref().as_integer());
    let rules = document.get_ref().get("rule").and_then(|node| node.get_ref().as_array());
    let ours =
        schema.is_none_or(|number| i128::from_str_radix(number.as_str(), number.radix()) == Ok(1));
    ours && rules.is_none_or(|rules| rules.len() < valid::MOST_RULES)
}
