//! The compiled tables against a naive reading of the policy, and what rules keep across policies.

use std::collections::HashSet;
use std::fmt::Write;

use limiter_common::packet::{Kind, Protocol};
use proptest::prelude::*;

use super::*;
use crate::policy::{Match, Packets};

const NOW: UnixNanos = UnixNanos(1_800_000_000_000_000_000);

fn parse(text: &str) -> Policy {
    Policy::parse(text).unwrap_or_else(|problems| panic!("{problems}\n{text}")).policy
}

/// A policy of TCP rules, one for each `name extra`.
fn policy(rules: &[(&str, &str)]) -> Policy {
    let mut text = String::from("schema = 1\n");
    for (name, extra) in rules {
        let window = if extra.contains("window") { "" } else { "window = \"10s\"\n" };
        let limit = if extra.contains("limit") { "" } else { "limit = { source = 20 }\n" };
        write!(
            text,
            "[[rule]]\nname = \"{name}\"\nmatch = [{{ protocol = \"tcp\" }}]\n{window}{limit}{extra}\n"
        )
        .unwrap();
    }
    parse(&text)
}

fn compile_on(registry: &Registry, policy: &Policy) -> Snapshot {
    Snapshot::compile(policy, registry, &ModeOverrides::default(), 1, NOW).unwrap()
}

fn compile(policy: &Policy) -> Snapshot {
    compile_on(&Registry::default(), policy)
}

/// The three look-ups of the kernel program.
fn look_up(snapshot: &Snapshot, protocol: u32, kind: usize, port: Option<u16>) -> RuleSet {
    let tables = &snapshot.classifier;
    let row = port.map_or(Classifier::NO_PORT, |port| tables.port[usize::from(port)]);
    let column = usize::from(tables.protocol[protocol as usize]);
    let class = tables.class[column << 11 | kind << 8 | usize::from(row)];
    snapshot.sets[usize::from(class)]
}

/// Those of the classes: behind them come the rules by themselves.
fn sets_of_classes(snapshot: &Snapshot) -> impl Iterator<Item = &RuleSet> {
    snapshot.sets.iter().take(256)
}

/// The policy, read word for word.
fn naive(policy: &Policy, protocol: u32, kind: usize, port: Option<u16>) -> u32 {
    let accepts = |it: &Match| {
        if protocol == Protocol::UNKNOWN.index() {
            return it.ports().is_empty() && it.packets() == Packets::All;
        }
        it.protocol().is_none_or(|number| u32::from(number) == protocol)
            && (it.packets() == Packets::All || kind == Kind::TcpSyn as usize)
            && (it.ports().is_empty()
                || port.is_some_and(|port| it.ports().iter().any(|range| range.contains(&port))))
    };
    let matching = policy.rules().iter().map(|rule| rule.matches().iter().any(accepts));
    matching.zip(0..).fold(0, |set, (matches, bit)| set | u32::from(matches) << bit)
}

fn a_port() -> impl Strategy<Value = u16> {
    prop_oneof![0_u16..12, 65_530..=65_535_u16, any::<u16>()]
}

fn some_ports() -> impl Strategy<Value = String> {
    let range = (a_port(), a_port()).prop_map(|(a, b)| match a.cmp(&b) {
        std::cmp::Ordering::Equal => a.to_string(),
        _ => format!("\"{}-{}\"", a.min(b), a.max(b)),
    });
    prop::collection::vec(range, 1..4).prop_map(|ranges| ranges.join(", "))
}

fn a_match() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{ protocol = "any" }"#.to_owned()),
        any::<u8>().prop_map(|number| format!("{{ protocol = {number} }}")),
        Just(r#"{ protocol = "tcp", packets = "tcp-syn" }"#.to_owned()),
        some_ports().prop_map(|ports| format!(
            r#"{{ protocol = 6, packets = "tcp-syn", ports = [{ports}] }}"#
        )),
        (prop::sample::select(vec!["tcp", "udp", "sctp", "dccp", "udplite"]), some_ports())
            .prop_map(|(name, ports)| format!(r#"{{ protocol = "{name}", ports = [{ports}] }}"#)),
    ]
}

fn a_policy() -> impl Strategy<Value = Policy> {
    let rule = (prop::collection::vec(a_match(), 1..5), any::<bool>());
    prop::collection::vec(rule, 0..8).prop_map(|rules| {
        let mut text = String::from("schema = 1\n");
        for (number, (matches, shadow)) in rules.iter().enumerate() {
            let mode = if *shadow { "shadow" } else { "enforce" };
            let matches = matches.join(", ");
            write!(
                text,
                "[[rule]]\nname = \"r{number}\"\nmatch = [{matches}]\n\
                 limit = {{ source = 1 }}\nwindow = \"1s\"\nmode = \"{mode}\"\n"
            )
            .unwrap();
        }
        parse(&text)
    })
}

fn a_protocol() -> impl Strategy<Value = u32> {
    prop_oneof![Just(256_u32), prop::sample::select(vec![6_u32, 17, 33, 132, 136]), 0_u32..=256]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_class_is_the_set_of_rules_that_match(
        policy in a_policy(),
        packets in prop::collection::vec((a_protocol(), 0_usize..8, prop::option::of(a_port())), 200),
    ) {
        let snapshot = compile(&policy);
        let shadow = shadow_mask(&policy, &ModeOverrides::default());
        for (protocol, kind, port) in packets {
            let class = look_up(&snapshot, protocol, kind, port);
            let all = naive(&policy, protocol, kind, port);
            prop_assert_eq!(class.enforced_bits(), all & !shadow, "{} {} {:?}", protocol, kind, port);
            prop_assert_eq!(class.shadow_bits(), all & shadow);
        }
    }
}

#[test]
fn every_port_and_protocol_of_one_policy() {
    let policy = parse(include_str!("../../../examples/web-edge.toml"));
    let snapshot = compile(&policy);
    for protocol in [1, 6, 17, 58, 200, 256] {
        for kind in 0..8 {
            for port in std::iter::once(None).chain((0..=u16::MAX).map(Some)) {
                let class = look_up(&snapshot, protocol, kind, port);
                let set = class.enforced_bits() | class.shadow_bits();
                assert_eq!(set, naive(&policy, protocol, kind, port), "{protocol} {kind} {port:?}");
            }
        }
    }
}

#[test]
fn an_empty_policy_matches_nothing() {
    let snapshot = compile(&parse("schema = 1\n"));
    assert_eq!(snapshot.policy.span, 1);
    assert_eq!(snapshot.sets, vec![RuleSet::EMPTY; 512]);
    assert!(snapshot.classifier.class.iter().all(|class| *class == 0));
    assert_eq!((snapshot.rules.len(), snapshot.registry.next_rule_id()), (32, 1));
}

#[test]
fn class_0_matches_nothing_whatever_the_rules() {
    let snapshot = compile(&policy(&[("a", "")]));
    assert_eq!(snapshot.sets[0], RuleSet::EMPTY);
}

#[test]
fn behind_the_classes_each_rule_is_a_set_of_its_own() {
    let policy =
        policy(&[("a", "window = \"1s\""), ("b", "mode = \"shadow\""), ("c", "unit = \"bytes\"")]);
    let snapshot = compile(&policy);
    assert_eq!(snapshot.sets.len(), 512);
    for (place, rule) in snapshot.rules.iter().enumerate().take(3) {
        let set = snapshot.sets[256 + place];
        // Whatever its mode: this is what a rule in shadow is judged by.
        assert_eq!((set.enforced_bits(), set.shadow_bits()), (1 << place, 0));
        assert_eq!((set.row(0), set.window()), (rule.row(), rule.window()));
    }
    assert_eq!(snapshot.sets[258].byte_shift(), Some(0));
    assert!(snapshot.sets[259..].iter().all(|set| *set == RuleSet::EMPTY));
    let class = look_up(&snapshot, 6, 0, Some(80));
    assert_eq!((class.enforced_bits(), class.shadow_bits()), (0b101, 0b010));
    assert_eq!((class.window().ticks(), class.byte_shift()), (10, Some(0)));
    assert_eq!([0, 1, 2].map(|i| class.place(i)), [0, 2, 1], "those in shadow last");
}

#[test]
fn the_span_is_the_longest_life() {
    let snapshot = compile(&policy(&[("a", "window = \"100ms\""), ("b", "window = \"1h\"")]));
    assert_eq!(snapshot.policy.span, 72_000);
    assert_eq!(compile(&policy(&[("a", "window = \"100ms\"")])).policy.span, 11);
}

#[test]
fn limits_are_what_the_file_says() {
    let policy = policy(&[
        ("a", "limit = { source = 0, total = \"unlimited\" }"),
        ("b", "unit = \"bytes\"\nlimit = { prefix = \"50MB\" }"),
    ]);
    let snapshot = compile(&policy);
    let [a, b] = [snapshot.rules[0], snapshot.rules[1]];
    let limits = |rule: RuleEntry| {
        use limiter_common::key::Level;
        Level::ALL.map(|level| rule.limit(level))
    };
    assert_eq!(limits(a), [Some(UNLIMITED), None, Some(0)]);
    assert_eq!(limits(b), [None, Some(50_000_000 / 16), None]);
    assert_eq!(b.cost((1, 17)), 2);
    assert_eq!((a.cost((1, 17)), a.window().ticks()), (1, 100));
    assert_eq!(snapshot.rules[2], blank());
}

#[test]
fn the_version_and_the_answers_to_faults_are_passed_on() {
    use limiter_common::layout::OnFault;
    use limiter_common::packet::Fault;
    let policy = parse("schema = 1\n[parse]\nvlan-depth = \"drop\"\nmalformed = \"pass\"\n");
    let entry = Snapshot::compile(&policy, &Registry::default(), &ModeOverrides::default(), 7, NOW)
        .unwrap()
        .policy;
    assert_eq!(entry.version, 7);
    assert_eq!(
        Fault::ALL.map(|fault| entry.on_fault(fault)),
        [OnFault::Limit, OnFault::Pass, OnFault::Drop, OnFault::Limit]
    );
}

#[test]
fn an_override_beats_the_file_and_waits_for_rules_that_are_not_there() {
    let policy = policy(&[("a", ""), ("b", "mode = \"shadow\""), ("c", "")]);
    let masks = |overrides: &[(&str, Mode)]| {
        let overrides = overrides.iter().map(|(name, mode)| ((*name).to_owned(), *mode));
        let overrides = ModeOverrides(overrides.collect());
        let snapshot =
            Snapshot::compile(&policy, &Registry::default(), &overrides, 1, NOW).unwrap();
        let class = look_up(&snapshot, 6, 0, Some(80));
        (class.enforced_bits(), class.shadow_bits())
    };
    assert_eq!(masks(&[]), (0b101, 0b010));
    assert_eq!(masks(&[("a", Mode::Shadow)]), (0b100, 0b011));
    assert_eq!(masks(&[("b", Mode::Enforce), ("gone", Mode::Shadow)]), (0b111, 0));
}

#[test]
fn too_many_kinds_of_ports_name_the_rules() {
    let many =
        |port: u32| (0..128).map(|i| (port + 2 * i).to_string()).collect::<Vec<_>>().join(",");
    let mut text = String::from("schema = 1\n");
    // Bit k of a port's number decides whether rule k has it: a set of rules for each port.
    for bit in 0..8 {
        let ports: Vec<String> =
            (0..255).filter(|port| port >> bit & 1 == 1).map(|port| port.to_string()).collect();
        write!(
            text,
            "[[rule]]\nname = \"bit-{bit}\"\nwindow = \"1s\"\nlimit.source = 1\n\
             match = [{{ protocol = \"tcp\", ports = [{}] }}]\n",
            ports.join(",")
        )
        .unwrap();
    }
    // 254 such sets, all other ports, and "no port": exactly 256 rows.
    assert_eq!(
        sets_of_classes(&compile(&parse(&text))).filter(|set| set.enforced() != 0).count(),
        254
    );
    write!(
        text,
        "[[rule]]\nname = \"last\"\nwindow = \"1s\"\nlimit.source = 1\n\
         match = [{{ protocol = \"udp\", ports = [{}] }}]\n",
        many(1)
    )
    .unwrap();
    let error = error(&text);
    assert!(error.contains("the ports of the rules \"last\", \"bit-0\""), "{error}");
    assert!(error.contains("join single ports to ranges"), "{error}");
}

#[test]
fn too_many_protocols_name_the_rules() {
    let rules = |most: u32| {
        let mut text = String::from("schema = 1\n");
        // Each protocol in a set of rules of its own: bit k of its number decides about rule k.
        for bit in 0..7 {
            let numbers = (0..most).filter(|number| (number + 1) >> bit & 1 == 1);
            let matches: Vec<String> =
                numbers.map(|number| format!("{{ protocol = {number} }}")).collect();
            for (part, matches) in matches.chunks(32).enumerate() {
                write!(
                    text,
                    "[[rule]]\nname = \"r{bit}-{part}\"\nwindow = \"1s\"\nlimit.source = 1\n\
                     match = [{}]\n",
                    matches.join(",")
                )
                .unwrap();
            }
        }
        text
    };
    // 62 protocols, all others, and "unknown".
    compile(&parse(&rules(62)));
    let error = error(&rules(70));
    assert!(error.contains("tell more than 64 protocols apart"), "{error}");
    assert!(error.contains("\"r0-0\""), "{error}");
}

#[test]
fn too_many_overlaps_name_the_rules() {
    let mut text = String::from("schema = 1\n");
    let list = |bit: u32| {
        let ports = (1..150).filter(|port| port >> bit & 1 == 1);
        ports.map(|port: u32| port.to_string()).collect::<Vec<_>>().join(",")
    };
    for (name, protocol) in [("t", "tcp"), ("u", "udp")] {
        for bit in 0..8 {
            write!(
                text,
                "[[rule]]\nname = \"{name}{bit}\"\nwindow = \"1s\"\nlimit.source = 1\n\
                 match = [{{ protocol = \"{protocol}\", ports = [{}] }}]\n",
                list(bit)
            )
            .unwrap();
        }
    }
    let error = error(&text);
    assert!(error.contains("overlap in more than 255 ways"), "{error}");
    assert!(error.contains("and 10 more"), "{error}");
}

fn error(text: &str) -> String {
    let registry = Registry::default();
    let compiled = Snapshot::compile(&parse(text), &registry, &ModeOverrides::default(), 1, NOW);
    compiled.unwrap_err().to_string()
}

fn places(snapshot: &Snapshot, names: &[&str]) -> Vec<(u32, u32)> {
    let assigned = names.iter().map(|name| snapshot.registry.assigned(name).unwrap());
    assigned.map(|assigned| (assigned.row, assigned.id)).collect()
}

#[test]
fn order_limits_and_neighbours_leave_row_id_and_bucket_alone() {
    let first = compile(&policy(&[("a", ""), ("b", ""), ("c", "")]));
    assert_eq!(places(&first, &["a", "b", "c"]), [(0, 1), (1, 2), (2, 3)]);
    assert_eq!(first.reused_rows, [0, 1, 2]);
    let second = compile_on(
        &first.registry,
        &policy(&[("new", ""), ("c", "limit = { total = 9 }"), ("a", "mode = \"shadow\"")]),
    );
    assert_eq!(places(&second, &["a", "c"]), [(0, 1), (2, 3)]);
    assert_eq!(second.rules[1].group(), first.rules[2].group());
    assert_eq!((second.rules[1].id(), second.rules[1].row()), (3, 2));
    assert_eq!(second.reused_rows, [3]);
}

#[test]
fn another_window_or_unit_is_a_new_id_in_the_same_row() {
    let first = compile(&policy(&[("a", ""), ("b", "")]));
    let second = compile_on(
        &first.registry,
        &policy(&[("a", "window = \"20s\""), ("b", "unit = \"bytes\"")]),
    );
    assert_eq!(places(&second, &["a", "b"]), [(0, 3), (1, 4)]);
    assert!(second.reused_rows.is_empty());
}

#[test]
fn a_rename_takes_a_fresh_row_and_the_old_name_finds_its_own_again() {
    let first = compile(&policy(&[("a", ""), ("b", "")]));
    let second = compile_on(&first.registry, &policy(&[("a", ""), ("renamed", "")]));
    assert_eq!(places(&second, &["renamed"]), [(2, 3)]);
    let third = compile_on(&second.registry, &policy(&[("a", ""), ("b", "")]));
    assert_eq!(places(&third, &["a", "b"]), [(0, 1), (1, 2)]);
    assert!(third.reused_rows.is_empty());
    let fourth = compile_on(&second.registry, &policy(&[("b", "window = \"1s\"")]));
    assert_eq!(places(&fourth, &["b"]), [(1, 4)]);
}

#[test]
fn a_quantum_stays_while_it_serves() {
    let bytes =
        |limit: &str| policy(&[("a", &format!("unit = \"bytes\"\nlimit.source = {limit}"))]);
    let shift = |snapshot: &Snapshot| match snapshot.rules[0].unit() {
        Unit::Bytes(quantum) => quantum.shift(),
        Unit::Packets => panic!("not bytes"),
    };
    let first = compile(&bytes("\"50MB\""));
    assert_eq!((shift(&first), first.rules[0].id()), (4, 1));
    // Less, and still fine enough: the same quantum, although a smaller one would do.
    let lower = compile_on(&first.registry, &bytes("\"1MB\""));
    assert_eq!((shift(&lower), lower.rules[0].id()), (4, 1));
    // 2,000 bytes in units of 16 would be 125 of them; exact counting is worth a new id.
    let tiny = compile_on(&first.registry, &bytes("2000"));
    assert_eq!((shift(&tiny), tiny.rules[0].id()), (0, 2));
    let higher = compile_on(&first.registry, &bytes("\"100MB\""));
    assert_eq!((shift(&higher), higher.rules[0].id()), (5, 2));
    let nothing = compile_on(&first.registry, &bytes("0"));
    assert_eq!((shift(&nothing), nothing.rules[0].id()), (4, 1));
}

#[test]
fn forty_generations_of_renames_never_share_a_row_or_an_id() {
    rename_forty_times(|generation| UnixNanos(NOW.0 + generation));
}

#[test]
fn nor_do_they_if_the_clock_runs_backwards() {
    rename_forty_times(|generation| UnixNanos(NOW.0 - generation));
}

fn rename_forty_times(clock: impl Fn(u64) -> UnixNanos) {
    let mut registry = Registry::default();
    let mut given = HashSet::new();
    for generation in 0..40_u64 {
        let names: Vec<String> = (0..32).map(|i| format!("g{generation}-{i}")).collect();
        let rules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let now = clock(generation);
        let live = Registry::clone(&registry);
        let snapshot =
            Snapshot::compile(&policy(&rules), &registry, &ModeOverrides::default(), 1, now)
                .unwrap();
        let rows: HashSet<u32> = snapshot.rules.iter().map(RuleEntry::row).collect();
        assert_eq!(rows.len(), 32, "generation {generation}");
        for rule in &snapshot.rules {
            assert!(given.insert(rule.id()), "id {} was given before", rule.id());
        }
        // Nothing that was counted a moment ago changes its meaning now.
        let before =
            (0..32).filter_map(|i| live.assigned(&format!("g{}-{i}", generation.wrapping_sub(1))));
        assert!(before.map(|before| before.row).all(|row| !rows.contains(&row)));
        assert_eq!(snapshot.reused_rows.len(), 32);
        registry = snapshot.registry;
    }
}

#[test]
fn the_row_that_retired_longest_ago_goes_first() {
    let mut registry = Registry::default();
    for (age, name) in (0..64).map(|i| (i, format!("r{i}"))) {
        let now = UnixNanos(NOW.0 + age);
        registry = Snapshot::compile(
            &policy(&[(&name, "")]),
            &registry,
            &ModeOverrides::default(),
            1,
            now,
        )
        .unwrap()
        .registry;
    }
    // The new one has no packet in common with the others: no row is better than another.
    let rows = rows_on(&registry, &[("r63", TCP), ("new", DNS), ("r1", TCP)]);
    assert_eq!(rows, [63, 0, 1]);
    // With a partner, the row beside that is.
    let snapshot = compile_on(&registry, &policy(&[("r63", ""), ("new", ""), ("r1", "")]));
    assert_eq!(places(&snapshot, &["r63", "new", "r1"]), [(63, 64), (62, 65), (1, 2)]);
    assert_eq!(snapshot.reused_rows, [62]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any history of policies: live rules differ in row and id, and at most two share a group.
    #[test]
    fn live_rules_never_share_a_row_or_an_id(
        history in prop::collection::vec(prop::collection::btree_set(0_u8..80, 0..=32), 1..12),
    ) {
        let mut registry = Registry::default();
        for names in history {
            let names: Vec<String> = names.iter().rev().map(|name| format!("n{name}")).collect();
            let rules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
            let snapshot = compile_on(&registry, &policy(&rules));
            let live = &snapshot.rules[..rules.len()];
            let rows: HashSet<u32> = live.iter().map(RuleEntry::row).collect();
            let ids: HashSet<u32> = live.iter().map(RuleEntry::id).collect();
            prop_assert_eq!((rows.len(), ids.len()), (rules.len(), rules.len()));
            for group in 0..32 {
                prop_assert!(live.iter().filter(|rule| rule.group() == group).count() <= 2);
            }
            let entries = snapshot.registry.to_entries();
            registry = Registry::from_entries(&entries, snapshot.registry.next_rule_id());
            prop_assert_eq!(&registry, &snapshot.registry);
        }
    }
}

#[test]
fn a_damaged_registry_costs_counts_but_no_id() {
    let first = compile(&policy(&[("a", ""), ("b", ""), ("c", "")]));
    let mut entries = first.registry.to_entries();
    entries[0].name[0] = 0xff;
    entries[1].window = 0;
    entries[2].shift = 99;
    let registry = Registry::from_entries(&entries, 0);
    assert_eq!(registry.next_rule_id(), 4);
    let second = compile_on(&registry, &policy(&[("a", "")]));
    assert_eq!(places(&second, &["a"]), [(0, 4)]);
    assert_eq!(second.reused_rows, [0]);
}

#[test]
fn names_are_found_by_row_and_by_id() {
    let first = compile(&policy(&[("a", ""), ("b", "")]));
    assert_eq!(first.registry.name(1), Some("b"));
    assert_eq!(first.registry.name(2), None);
    assert_eq!(first.registry.name(u32::MAX), None);
    assert_eq!(first.registry.name_of_id(1), Some("a"));
    assert_eq!(first.registry.name_of_id(9), None);
}

#[test]
fn the_longest_name_survives_the_map() {
    let name = "n".repeat(48);
    let first = compile(&policy(&[(&name, "")]));
    let again = Registry::from_entries(&first.registry.to_entries(), 2);
    assert_eq!(again, first.registry);
}

/// Rules by what they match; the rows they get in new maps, or in those of a policy before.
fn rows_on(registry: &Registry, rules: &[(&str, &str)]) -> Vec<u32> {
    let mut text = String::from("schema = 1\n");
    for (name, matches) in rules {
        write!(
            text,
            "[[rule]]\nname = \"{name}\"\nmatch = [{matches}]\nwindow = \"1s\"\nlimit.source = 1\n"
        )
        .unwrap();
    }
    let snapshot = compile_on(registry, &parse(&text));
    snapshot.rules[..rules.len()].iter().map(RuleEntry::row).collect()
}

fn rows(rules: &[(&str, &str)]) -> Vec<u32> {
    rows_on(&Registry::default(), rules)
}

const TCP: &str = r#"{ protocol = "tcp" }"#;
const UDP: &str = r#"{ protocol = "udp" }"#;
const SYN: &str = r#"{ protocol = "tcp", packets = "tcp-syn" }"#;
const DNS: &str = r#"{ protocol = "udp", ports = [53] }"#;
const WEB: &str = r#"{ protocol = "tcp", ports = ["1-40000"] }"#;
const ANY: &str = r#"{ protocol = "any" }"#;

#[test]
fn rules_that_judge_the_same_packets_share_a_bucket() {
    // TCP and SYN share all SYNs, UDP and DNS all of port 53: whatever lies between them.
    let rows = rows(&[("tcp", TCP), ("udp", UDP), ("dns", DNS), ("syn", SYN)]);
    assert_eq!(rows[0] ^ 1, rows[3], "{rows:?}");
    assert_eq!(rows[1] ^ 1, rows[2], "{rows:?}");
}

#[test]
fn the_pair_with_most_packets_in_common_comes_first() {
    // "any" shares all of UDP with "udp" and a port with "dns", so "dns" has to do without.
    let three = rows(&[("dns", DNS), ("any", ANY), ("udp", UDP)]);
    assert_eq!(three[1] ^ 1, three[2], "{three:?}");
    assert_ne!(three[0] / 2, three[1] / 2, "{three:?}");
    // All of TCP in common beats the lower ports of it.
    let tcp = rows(&[("web", WEB), ("one", TCP), ("two", TCP)]);
    assert_eq!(tcp[1] ^ 1, tcp[2], "{tcp:?}");
}

#[test]
fn of_pairs_that_share_as_much_the_first_in_the_policy_is_chosen() {
    let four = rows(&[("a", TCP), ("b", TCP), ("c", TCP), ("d", TCP)]);
    assert_eq!(four, [0, 1, 2, 3]);
    let odd = rows(&[("a", UDP), ("b", TCP), ("c", TCP), ("d", TCP)]);
    assert_eq!((odd[1] ^ 1, odd[0] / 2 == odd[1] / 2), (odd[2], false), "{odd:?}");
}

#[test]
fn rules_without_a_packet_in_common_have_no_partner() {
    let text = |matches: [&str; 3]| {
        let mut text = String::from("schema = 1\n");
        for (i, matches) in matches.iter().enumerate() {
            write!(
                text,
                "[[rule]]\nname = \"r{i}\"\nmatch = [{matches}]\nwindow = \"1s\"\nlimit.source = 1\n"
            )
            .unwrap();
        }
        parse(&text)
    };
    let partners =
        |matches: [&str; 3]| pairs::partners(&Classes::of(text(matches).rules()).unwrap(), 3);
    assert_eq!(partners([TCP, UDP, r#"{ protocol = 47 }"#]), [None; 3]);
    assert_eq!(partners([TCP, UDP, SYN]), [Some(2), None, Some(0)]);
    assert_eq!(partners([UDP, ANY, DNS]), [Some(1), Some(0), None]);
}

#[test]
fn a_rule_that_has_a_row_keeps_it_and_a_new_partner_moves_in_beside_it() {
    let first = compile(&policy(&[("tcp", ""), ("other", "")]));
    assert_eq!(places(&first, &["tcp", "other"]), [(0, 1), (1, 2)]);
    // Partners by now are "tcp" and "syn", but the row beside "tcp" is taken.
    let rows = rows_on(&first.registry, &[("syn", SYN), ("other", UDP), ("tcp", TCP)]);
    assert_eq!((rows[2], rows[1]), (0, 1), "who has a row keeps it: {rows:?}");
    assert!(rows[0] > 1);
    // "other" has left for good: its row is free for the partner two policies later.
    let alone = compile_on(&first.registry, &policy(&[("tcp", "")]));
    let rows = rows_on(&alone.registry, &[("syn", SYN), ("tcp", TCP), ("udp", UDP)]);
    assert_eq!((rows[1], rows[0]), (0, 1), "{rows:?}");
    assert!(rows[2] > 1);
}
