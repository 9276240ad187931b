//! Policies as people write them, and what they are told.

use std::time::Duration;

use limiter_common::key::Level;
use limiter_common::layout::{DEFAULT_BUCKETS, OnFault};
use limiter_common::packet::Fault;
use proptest::prelude::*;

use super::report::{Report, TableSize};
use super::*;
use crate::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};

const RULE: &str = r#"schema = 1
[[rule]]
name   = "r"
match  = [{ protocol = "tcp" }]
limit  = { source = 20 }
window = "10s"
"#;

fn good(text: &str) -> Checked {
    Policy::parse(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

fn problems(text: &str) -> String {
    match Policy::parse(text) {
        Ok(checked) => panic!("nothing wrong: {checked:?}\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

/// The problem of [`RULE`] with one line replaced, or one added.
fn problem_with(line: &str) -> String {
    let problems = problems(&rule_with(line));
    assert!(!problems.contains('\n'), "more than one problem:\n{problems}");
    problems
}

fn rule_with(line: &str) -> String {
    let key = line.split('=').next().unwrap_or(line).trim();
    let mut text: String = RULE
        .lines()
        .filter(|old| old.split('=').next().map(str::trim) != Some(key))
        .flat_map(|old| [old, "\n"])
        .collect();
    text.push_str(line);
    text
}

fn warnings_with(lines: &str) -> Vec<String> {
    good(&rule_with(lines)).warnings.iter().map(Problem::to_string).collect()
}

#[test]
fn five_mistakes_are_told_at_once_in_the_order_of_lines() {
    let text = r#"schema = 1

[[rule]]
name   = "new-connections"
match  = [{ protocol = "tcp", packets = "tcp-syn", ports = [80, "443-80"] }]
limit  = { source = -5, prefix = 200 }
windw  = "10s"

[[rule]]
name   = "udp-volume"
match  = [{ protocol = "icmp", ports = [53] }]
unit   = "bytes"
limit  = { total = "50GB" }
window = "10s"
"#;
    assert_eq!(
        problems(text),
        r#"line 5: rule "new-connections": match.ports: "443-80" ends before it begins; write "80-443"
line 6: rule "new-connections": limit.source: -5 is below 0; write 0 to refuse everything, or "unlimited" to count only
line 7: rule "new-connections": windw: unknown key; did you mean "window"?
line 11: rule "udp-volume": match.ports: icmp has no ports; remove ports, or write one match for each of tcp, udp, sctp, dccp, udplite
line 13: rule "udp-volume": limit.total: "50GB" is more than the 268,435,391 bytes that can be counted; write a shorter window with a smaller limit, or "unlimited" to count only"#
    );
}

#[test]
fn each_mistake_has_its_line_its_place_and_its_fix() {
    let mut wrong = 0;
    for (line, wanted) in [
        (
            "name = \"New Conns\"",
            "line 6: rule \"New Conns\": name: \"New Conns\" is not a name; write 1 to 48 of a-z",
        ),
        ("name = \"\"", "rule #1: name: \"\" is not a name"),
        ("name = 7", "rule #1: name: 7 is not a string"),
        ("window = \"10 parsecs\"", "window: \"10 parsecs\" is no length of time"),
        ("window = 10", "window: 10 is not a string; write a length with its unit"),
        ("window = \"2h\"", "write a length from \"100ms\" to \"1h\""),
        ("unit = \"byte\"", "unit: \"byte\" is not known here; did you mean \"bytes\"?"),
        ("mode = \"off\"", "mode: \"off\" is not known here; write \"enforce\" or \"shadow\""),
        ("action = \"reject\"", "action: \"reject\" is not built in this version; write \"drop\""),
        ("action = \"mark\"", "not built in this version"),
        ("scope = \"fleet\"", "scope: \"fleet\" is not built in this version; write \"host\""),
        ("algorithm = \"token-bucket\"", "not built in this version; write \"fixed-window\""),
        (
            "on_authority_loss = \"share\"",
            "on_authority_loss: this is not built in this version; remove it",
        ),
        ("mark = \"cs1\"", "mark: this is not built in this version; remove it"),
        ("limits = { source = 1 }", "limits: unknown key; did you mean \"limit\"?"),
        ("frobnicate = 1", "frobnicate: unknown key; write one of: name, match"),
        ("limit = 20", "limit: 20 is not a table; write, for instance, limit = {"),
        ("limit = {}", "limit: names no level to limit"),
        (
            "limit = { host = 3, source = 1 }",
            "limit.host: unknown key; write one of: source, prefix, total",
        ),
        ("limit = { source = 1.5 }", "limit.source: 1.5 is not a string; write a whole number"),
        ("limit = { source = \"50MB\" }", "add unit = \"bytes\""),
        (
            "limit = { source = 4194303 }",
            "is more than the 4,194,302 packets that can be counted; write a shorter window",
        ),
        ("limit = { source = 99999999999999999999999999999999999999999999 }", "can be counted"),
        (
            "limit = { source = { rate = \"5MB/s\", burst = \"2MB\" } }",
            "rate and burst is not built in this version",
        ),
        ("match = []", "match: is empty"),
        (
            "match = { protocol = \"tcp\" }",
            "match: {…} is not an array; write, for instance, match = [{",
        ),
        ("match = [\"tcp\"]", "match: \"tcp\" is not a table"),
        ("match = [{ ports = [80] }]", "match.protocol: is missing; add protocol = \"tcp\""),
        ("match = [{ protocol = \"TCP\" }]", "did you mean \"tcp\"?"),
        ("match = [{ protocol = \"ospf\" }]", "sctp, udplite, or its number"),
        (
            "match = [{ protocol = 256 }]",
            "256 is not a protocol number; write a number from 0 to 255",
        ),
        (
            "match = [{ protocol = \"udp\", packets = \"tcp-syn\" }]",
            "\"tcp-syn\" doesn't go with udp",
        ),
        (
            "match = [{ protocol = \"any\", packets = \"tcp-syn\" }]",
            "\"tcp-syn\" doesn't go with \"any\"",
        ),
        (
            "match = [{ protocol = \"tcp\", packets = \"syn\" }]",
            "packets: \"syn\" is not a kind of packets",
        ),
        ("match = [{ protocol = \"any\", ports = [80] }]", "\"any\" has no ports"),
        ("match = [{ protocol = \"tcp\", ports = 80 }]", "80 is not an array"),
        ("match = [{ protocol = \"tcp\", ports = [] }]", "ports: is empty"),
        ("match = [{ protocol = \"tcp\", ports = [65536] }]", "65536 is not a port"),
        ("match = [{ protocol = \"tcp\", ports = [\"http\"] }]", "\"http\" is not a port"),
        (
            "match = [{ protocol = \"tcp\", cost = 10 }]",
            "match.cost: this is not built in this version",
        ),
        ("[parse]\ncut_off = \"drop\"", "parse.cut_off: unknown key; did you mean \"cut-off\"?"),
        (
            "[parse]\ncut-off = \"dorp\"",
            "parse.cut-off: \"dorp\" is not known here; did you mean \"drop\"?",
        ),
        ("[[tier]]\nname = \"x\"", "tier: this is not built in this version; remove it"),
        ("[[override]]\nprefix = \"x\"", "override: this is not built in this version"),
        ("[[exempt]]\nprefix = \"x\"", "exempt: this is not built in this version"),
        ("[[block]]\nprefix = \"x\"", "block: this is not built in this version"),
        ("[[rules]]\nname = \"x\"", "line 7: rules: unknown key; did you mean \"rule\"?"),
        (
            "[[rule]]\nname = \"r\"\nmatch = [{ protocol = \"udp\" }]\nlimit.total = 1\nwindow = \"1s\"",
            "line 8: rule \"r\": name: the rule in line 3 has this name too",
        ),
        ("name == 3", "line 6: not TOML: "),
    ] {
        let problem = problem_with(line);
        if !problem.contains(wanted) || problem.contains('\n') {
            println!("{line}\n  says:   {problem}\n  wanted: {wanted}");
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0);
}

#[test]
fn the_top_of_the_file_is_checked_too() {
    for (text, wanted) in [
        ("", "line 1: schema: is missing; write schema = 1 at the top of the file"),
        ("shema = 1", "line 1: shema: unknown key; did you mean \"schema\"?"),
        ("schema = 2\nfoo = 1", "line 1: schema: 2 is not a schema that this version knows"),
        ("schema = \"1\"", "schema: \"1\" is not a number"),
        ("schema = 1\nversion = 0", "line 2: version: 0 is not a version"),
        ("schema = 1\nversion = -1", "version: -1 is not a version"),
        ("schema = 1\nversion = 18446744073709551616", "is not a version"),
        ("schema = 1\n[rule]\nname = \"x\"", "line 2: rule: {…} is not an array; begin each rule"),
        ("schema = 1\nrule = [3]", "line 2: rule: 3 is not a table"),
        ("schema = 1\nparse = 3", "line 2: parse: 3 is not a table"),
    ] {
        let told = problems(text);
        assert!(told.contains(wanted), "{text}\n  says:   {told}\n  wanted: {wanted}");
        assert!(!told.contains('\n'), "{told}");
    }
}

#[test]
fn a_forgotten_schema_hides_no_other_mistake() {
    for (text, wanted) in [
        ("foo = 1", ["line 1: schema: is missing", "line 1: foo: unknown key"]),
        (
            "shema = 1\nfoo = 1",
            ["line 1: shema: unknown key; did you mean", "line 2: foo: unknown"],
        ),
        (
            "schema = \"1\"\nfoo = 1",
            ["line 1: schema: \"1\" is not a number", "line 2: foo: unknown"],
        ),
    ] {
        let told = problems(text);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(lines.iter().zip(wanted).all(|(line, wanted)| line.starts_with(wanted)), "{told}");
    }
}

#[test]
fn defaults_and_values_arrive() {
    let policy = good(RULE).policy;
    let rule = &policy.rules()[0];
    assert_eq!((rule.mode(), rule.unit()), (Mode::Enforce, Unit::Packets));
    assert_eq!(rule.limit(Level::Source), Some(Limit::Finite(20)));
    assert_eq!(rule.limit(Level::Prefix), None);
    assert_eq!(rule.matches()[0].packets(), Packets::All);
    assert_eq!((policy.version(), policy.on_fault(Fault::CutOff)), (None, OnFault::Limit));
    let text = rule_with(
        "unit = \"bytes\"\nmode = \"shadow\"\naction = \"drop\"\nscope = \"host\"\n\
         algorithm = \"fixed-window\"\n[parse]\nheader-depth = \"pass\"\n",
    );
    let policy = good(&format!("version = 7\n{text}")).policy;
    assert_eq!((policy.version(), policy.rules()[0].mode()), (Some(7), Mode::Shadow));
    assert_eq!(policy.on_fault(Fault::HeaderDepth), OnFault::Pass);
}

#[test]
fn matches_are_shown_as_they_were_written() {
    let line = r#"match = [{ protocol = "tcp", packets = "tcp-syn", ports = [80, "8000-8100", 443] },
                 { protocol = 17, ports = [53] }, { protocol = 99 }, { protocol = "any" }]"#;
    let policy = good(&rule_with(line)).policy;
    assert_eq!(
        AppliesTo(&policy.rules()[0]).to_string(),
        "tcp, tcp-syn packets, ports 80, 8000-8100, 443; or udp, port 53; or protocol 99; \
         or any protocol"
    );
    for window in ["100ms", "1500ms", "10s", "1m", "90s", "1h"] {
        let policy = good(&rule_with(&format!("window = \"{window}\""))).policy;
        assert_eq!(Length(policy.rules()[0].window()).to_string(), window);
    }
}

#[test]
fn surprises_are_warned_of() {
    for (line, wanted) in [
        (
            "limit = { source = 0 }",
            "line 6: rule \"r\": limit.source: 0 refuses everything this rule",
        ),
        (
            "unit = \"bytes\"\nlimit.source = 1513",
            "a full frame of 1,514 bytes never fits into 1513",
        ),
        (
            "limit = { source = 30, prefix = 20 }",
            "the prefix's limit of 20 refuses before 30 is met",
        ),
        ("limit = { prefix = 30, total = 20 }", "the total's limit of 20 refuses before 30 is met"),
    ] {
        let text = line.replace("\nlimit.source", "\nlimit = { source ");
        let text = if text == line { text } else { text + " }" };
        let text = rule_with(&text.replace("unit = \"bytes\"\n", ""));
        let text = if line.starts_with("unit") { text + "\nunit = \"bytes\"" } else { text };
        let warnings: Vec<String> = good(&text).warnings.iter().map(Problem::to_string).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(wanted), "{}", warnings[0]);
    }
    assert_eq!(warnings_with("limit = { source = \"unlimited\", prefix = 20 }").len(), 0);
    assert!(good("schema = 1").warnings[0].to_string().contains("everything passes"));
}

#[test]
fn limits_at_the_edge_of_a_word_are_fine() {
    good(&rule_with("limit = { source = 4194302 }"));
    let bytes =
        |limit: u64| rule_with(&format!("limit = {{ total = {limit} }}")) + "\nunit = \"bytes\"";
    assert_eq!(good(&bytes(268_435_391)).policy.rules()[0].quantum().shift(), 6);
    assert!(problems(&bytes(268_435_392)).contains("268,435,391 bytes"));
}

#[test]
fn thirty_two_rules_and_not_one_more() {
    let rules = |count: usize| {
        let rule = |i| {
            format!("{}\n", RULE.replace("schema = 1", "").replace("\"r\"", &format!("\"r{i}\"")))
        };
        (0..count).fold(String::from("schema = 1\n"), |text, i| text + &rule(i))
    };
    assert_eq!(good(&rules(32)).policy.rules().len(), 32);
    assert!(problems(&rules(33)).contains("rule: 33 entries are too many; write at most 32"));
}

#[test]
fn the_examples_are_good() {
    for (name, text) in [
        ("demo", include_str!("../../../examples/demo.toml")),
        ("web-edge", include_str!("../../../examples/web-edge.toml")),
        ("dns-server", include_str!("../../../examples/dns-server.toml")),
        ("ssh-guard", include_str!("../../../examples/ssh-guard.toml")),
    ] {
        let checked = good(text);
        assert!(checked.warnings.is_empty(), "{name}: {:?}", checked.warnings);
        println!("{name}\n{}", report(&checked.policy));
    }
}

/// For a table of the usual size.
fn report(policy: &Policy) -> Report {
    let (registry, none) = (Registry::default(), ModeOverrides::default());
    let snapshot = Snapshot::compile(policy, &registry, &none, 1, UnixNanos(0)).unwrap();
    Report::new(
        policy,
        &snapshot.rules,
        TableSize { buckets: DEFAULT_BUCKETS, cpus: 2, sources: None },
    )
}

/// What docs/POLICY.md shows is true, mistakes included.
#[test]
fn the_documentation_is_right() {
    let text = include_str!("../../../docs/POLICY.md");
    let blocks: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
    let files: Vec<&str> = blocks.iter().filter_map(|block| block.strip_prefix("toml\n")).collect();
    let [first, parse, mistakes] = files[..] else { panic!("{} TOML blocks", files.len()) };
    assert!(good(first).warnings.is_empty());
    good(parse);
    let shown = blocks.iter().find_map(|block| block.strip_prefix("text\n"));
    assert_eq!(Some(problems(mistakes).as_str()), shown.map(str::trim_end));
}

#[test]
fn the_report_has_the_figures() {
    let text = rule_with("limit = { source = \"5MB\", prefix = \"50MB\", total = \"unlimited\" }");
    let policy = good(&(text + "\nunit = \"bytes\"")).policy;
    let report = report(&policy);
    assert_eq!(
        report.to_string(),
        r#"rule "r" (enforce)
  applies to       tcp
  limit            source 5,000,000, prefix 50,000,000, total unlimited bytes in each window of 10s
  worst burst      source 10,000,000, prefix 100,000,000 bytes at once, around a window's edge (2 x limit) [computed]
  prefix is full   after 10 sources at the limit [computed]
  a frame counts   as its length rounded up to a multiple of 16 bytes [computed]

table, for all rules together
  memory           26,401 KiB with 2 CPUs: words 8,192, addresses 16,384, rules 480, tickets 1,312, counters 33 [computed]
                   131,072 buckets of 8 keys
  keys             262,144 at a quarter full [computed]
  sources          262,144, up to 1 key each: 25 % full, 0.015 % of keys find no place [computed]
                   each in a prefix of its own, 1 key more: 50 % full, 0.84 % of keys find no place [computed]
  is full          of 1,048,576 sources at their limits [computed]
"#
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rules"][0]["full_sources_per_prefix"]["value"], 10);
    assert_eq!(json["rules"][0]["levels"][2]["worst_burst"]["basis"], "computed");
    assert_eq!(json["rules"][0]["mode"], "enforce");
}

#[test]
fn a_huge_file_is_refused_by_its_size() {
    let told = problems(&"#".repeat(MAX_BYTES + 1));
    assert_eq!(told, "line 1: 1,048,577 bytes are too long for a policy; write at most 1 MiB");
}

/// Of this thread: a busy machine must not fail the test.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.try_into().unwrap()
}

/// Files of the largest size, each made to be slow.
#[test]
fn no_file_takes_long() {
    let fill = |unit: &dyn Fn(usize) -> String, head: &str| {
        let mut text = String::from(head);
        let mut i = 0;
        loop {
            let next = unit(i);
            if text.len() + next.len() > MAX_BYTES {
                return text;
            }
            text += &next;
            i += 1;
        }
    };
    for (what, text) in [
        ("newlines", fill(&|_| "\n".into(), "schema = 1")),
        ("rules", fill(&|_| "[[rule]]\n".into(), "schema = 1\n")),
        ("keys", fill(&|i| format!("k{i}=1\n"), "schema = 1\n")),
        ("near keys", fill(&|i| format!("na{i:03}=1\n"), "schema = 1\n")),
        ("rule keys", fill(&|i| format!("wi{i}=1\n"), "schema = 1\n[[rule]]\n")),
        ("one key", format!("schema = 1\n{} = 1", "a".repeat(MAX_BYTES - 20))),
        ("dotted key", format!("schema = 1\n{}a = 1", "a.".repeat(MAX_BYTES / 2 - 20))),
        ("arrays", format!("schema = 1\na = {}", "[".repeat(MAX_BYTES - 20))),
        ("tables", fill(&|_| "{a=".into(), "schema = 1\na = ")),
        ("headers", fill(&|i| format!("[a{i}]\n"), "schema = 1\n")),
        ("deep headers", fill(&|i| format!("[a.b.c.d{i}]\n"), "schema = 1\n")),
        ("numbers", format!("schema = {}", "9".repeat(MAX_BYTES - 20))),
        (
            "ports",
            fill(&|i| format!("{},", i % 65_536), "schema=1\n[[rule]]\nmatch=[{protocol=6,ports=[")
                .trim_end_matches(|c: char| c != ',')
                .to_owned()
                + "]}]",
        ),
        ("quotes", "\"".repeat(MAX_BYTES)),
        ("zeros", "\0".repeat(MAX_BYTES)),
        ("escapes", fill(&|_| "\\u0041".into(), "schema = 1\na = \"")),
    ] {
        let begin = cpu_time();
        let result = Policy::parse(&text);
        let took = cpu_time() - begin;
        println!("{what}: {took:?}");
        let told = result.map_or_else(|problems| problems.to_string(), |_| String::new());
        assert!(told.lines().count() <= 51 && told.len() < 20_000, "{what}: {told}");
        // A second is the promise for optimised builds; unoptimised ones need up to that already.
        assert!(took < Duration::from_secs(5), "{what} took {took:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_answered(text in ".*") {
        let _ = Policy::parse(&text);
    }

    /// A good file with a piece cut out, doubled or replaced.
    #[test]
    fn a_broken_file_is_answered(
        from in 0_usize..2_000, length in 0_usize..40, other in prop_oneof![
            Just(String::new()), "[ -~\n]{0,20}", Just("\"unlimited\"".to_owned()), "-?[0-9]{1,40}",
        ],
    ) {
        let mut text = include_str!("../../../examples/web-edge.toml").to_owned();
        let at = |text: &str, mut i: usize| { while !text.is_char_boundary(i) { i -= 1 } i };
        let start = at(&text, from.min(text.len()));
        let end = at(&text, (from + length).min(text.len()));
        text.replace_range(start..end, &other);
        if let Err(problems) = Policy::parse(&text) {
            let lines = text.lines().count().max(1) + 1;
            for problem in problems.list() {
                prop_assert!(problem.line >= 1 && problem.line <= lines, "{problem}");
                prop_assert!(!problem.fix.is_empty() && !problem.reason.is_empty());
            }
        }
    }
}
