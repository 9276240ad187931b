//! A table under more sources than it is for (promise A10): who is being limited stays limited, who stays
//! below a limit passes, and what could not be kept is counted.

use std::thread;

use limiter_common::clock::{Tick, WindowLength};
use limiter_common::key::Level;
use limiter_common::layout::{RuleEntry, Unit};
use limiter_tests::frame::{Flags, Frame};
use limiter_tests::program::{Action, Changes, Program, START_MS, Spray, differences, on_cpu};
use limiter_tests::require;
use limiter_tests::require::cpus;
use limiter_tests::scale::{scaled, scaled_for};
use limiter_userspace::policy::capacity::{Bundles, Fill};

use crate::ready;

/// What the table is for: a quarter full with as many sources of one rule.
const SOURCES: u64 = 1_000_000;
const LIMIT: usize = 1_000;
/// Windows of ten seconds, and the steps in which the clock goes through each.
const WINDOW_MS: u64 = 10_000;
const STEPS: u64 = 10;

fn buckets() -> u32 {
    u32::try_from((scaled(SOURCES) * 4).div_ceil(8).next_power_of_two()).unwrap_or(u32::MAX)
}

/// Sources and prefixes; only who sends much is refused anything.
fn policy() -> String {
    format!(
        "schema = 1\n[[rule]]\nname = \"udp\"\nmatch = [{{ protocol = \"udp\" }}]\n\
         limit = {{ source = {LIMIT}, prefix = 100_000 }}\nwindow = \"10s\"\n"
    )
}

fn udp(source: &str) -> Vec<u8> {
    Frame::new().ipv4(source).udp(9).build()
}

/// Of the table's slots, in thousandths.
fn fill(program: &Program, at_ms: u64) -> u64 {
    let (table, policy) = (program.datapath().table(), program.datapath().policy());
    let span = policy.ok().flatten().map_or(0, |policy| policy.span);
    let now = Tick::from_unix_nanos((START_MS + at_ms) * 1_000_000);
    table.count_live(now, span) * 1_000 / table.slots()
}

/// Nine frames of forged sources to one of the heavy one; how many of the latter passed.
fn nine_to_one(program: &Program, spray: &Spray, forged: u64) -> (u64, usize) {
    const AT_ONCE: u32 = 90;
    let (heavy, any) = (udp("192.0.2.1"), udp("0.0.0.0"));
    let runner = program.runner();
    let blocks = forged.div_ceil(2 * u64::from(AT_ONCE)).max(20);
    let work = || {
        let of_block = |_| {
            spray.run(&any, AT_ONCE);
            runner.passes(&heavy, 10)
        };
        (0..blocks).map(of_block).sum::<usize>()
    };
    let passed = thread::scope(|scope| {
        let halves = [0, 1].map(|cpu| scope.spawn(move || on_cpu(cpu, work)));
        halves.map(|half| half.join().unwrap_or_default()).iter().sum()
    });
    (2 * blocks * u64::from(AT_ONCE), passed)
}

#[test]
fn a_heavy_source_gets_its_limit_in_every_window_through_ten_million_forged_ones() {
    require!(ready(), cpus(2));
    const WINDOWS: u64 = 4;
    let forged = scaled_for("a heavy source among forged ones", 10_000_000);
    let mut program = Program::with_buckets(buckets());
    program.apply(&policy());
    let (spray, begin) = (program.spray(), program.counts());
    let (mut strangers, mut heavy) = (0, 0);
    for window in 0..WINDOWS {
        let mut passed = 0;
        for step in 0..STEPS {
            program.at(window * WINDOW_MS + step * WINDOW_MS / STEPS);
            let (more, now) = nine_to_one(&program, &spray, forged / (WINDOWS * STEPS));
            (strangers, passed) = (strangers + more, passed + now);
        }
        println!("window {window}: the heavy source passed {passed}");
        assert!((LIMIT * 95 / 100..=LIMIT).contains(&passed), "window {window}: {passed}");
        heavy += passed as u64;
    }
    let (packets, _) = differences(&begin, &program.counts());
    println!("{strangers} forged in all: {packets:?}");
    assert_account(&packets, strangers, heavy);
    let full = fill(&program, (WINDOWS - 1) * WINDOW_MS);
    println!("the table is full to {full} in a thousand");
    assert!((850..=1_000).contains(&full), "{full}");
}

#[test]
fn a_source_that_begins_while_forged_ones_fill_the_table_is_held_exactly() {
    require!(ready(), cpus(2));
    // Small, so that a bucket is filled anew while the source claims its first eighth.
    let mut program = Program::with_buckets(1 << 13);
    program.apply(&policy());
    let spray = program.spray();
    for window in 0..scaled(100) {
        let passed = (0..STEPS).map(|step| {
            program.at(window * WINDOW_MS + step * WINDOW_MS / STEPS);
            nine_to_one(&program, &spray, 2_500).1
        });
        let passed: usize = passed.sum();
        assert!((LIMIT * 95 / 100..=LIMIT).contains(&passed), "window {window}: {passed}");
    }
}

/// Every packet is accounted for, and what gave way to others is counted. Only cold keys do, so there is
/// always one: nobody is `crowded`.
fn assert_account(packets: &Changes, forged: u64, heavy: u64) {
    let count = |name: &str| packets.get(name).copied().unwrap_or(0);
    let offered = forged + forged / 9;
    let contended = count("contended");
    assert_eq!(count("admitted") + count("refused") + contended, offered);
    assert!((forged + heavy - contended..=forged + heavy).contains(&count("admitted")));
    assert_eq!(count("rule udp passed"), count("admitted"));
    assert_eq!(count("rule udp refused source"), count("refused"));
    assert!(count("rule udp displaced source") > 0);
    assert_eq!(count("rule udp crowded source") + count("rule udp crowded prefix"), 0);
}

#[test]
fn keys_find_no_place_as_often_as_check_says() {
    require!(ready());
    // Two rules, whose keys share a bucket; a quarter full.
    const BUCKETS: u32 = 1 << 14;
    let sources = BUCKETS * 8 / 4 / 2;
    let rule = |name: &str| {
        let head = format!("[[rule]]\nname = \"{name}\"\nmatch = [{{ protocol = \"udp\" }}]\n");
        format!("{head}limit = {{ source = 20 }}\nwindow = \"10s\"\n")
    };
    let mut program = Program::with_buckets(BUCKETS);
    program.apply(&format!("schema = 1\n{}{}", rule("a"), rule("b")));
    let window = WindowLength::from_ticks(100).unwrap_or(WindowLength::MAX);
    let entry = |id| RuleEntry::new(id, id, window, Unit::Packets, 0).with_limit(Level::Source, 20);
    let bundles = Bundles::of(&[entry(1), entry(2)], Level::Source);
    let computed = Fill::with(sources.into(), bundles, BUCKETS);
    let before = program.counts();
    program.spray().run(&udp("0.0.0.0"), sources);
    let (packets, _) = differences(&before, &program.counts());
    let count = |rule| packets.get(&format!("rule {rule} displaced source")).copied().unwrap_or(0);
    let measured = (count("a") + count("b")) * 1_000_000 / u64::from(2 * sources);
    println!("of a million keys {measured} find no place, {} computed", computed.without_slot);
    assert_eq!(computed.load, 250_000);
    // Some 280 of 65,536 keys, most in pairs: half as many more or less is six standard deviations.
    let half = computed.without_slot / 2;
    assert!((computed.without_slot - half..=computed.without_slot + half).contains(&measured));
}

/// New connections are few, everything of TCP together is much.
const CONNECTIONS: &str = r#"
schema = 1
[[rule]]
name = "syn"
match = [{ protocol = "tcp", packets = "tcp-syn" }]
limit = { source = 20, prefix = 200 }
window = "10s"
[[rule]]
name = "tcp"
match = [{ protocol = "tcp" }]
limit = { source = 20_000 }
window = "10s"
"#;

#[test]
fn open_transfers_of_a_victim_lose_nothing_while_its_address_is_forged_in_a_million_syns() {
    require!(ready());
    const WINDOWS: u64 = 4;
    const ROUNDS: u64 = 25;
    let syns = scaled_for("a victim's transfers", 1_000_000);
    let mut program = Program::with_policy(CONNECTIONS);
    let tcp = |flags, length| {
        let frame = Frame::new().ipv4("198.51.100.7").tcp(443, flags);
        frame.payload(length).build()
    };
    let syn = tcp(Flags::SYN, 0);
    let transfer = [tcp(Flags::ACK, 1_400), tcp(Flags::ACK | Flags::PSH, 300), tcp(Flags::ACK, 0)];
    let at_once = u32::try_from(syns.div_ceil(WINDOWS * ROUNDS)).unwrap_or(u32::MAX);
    let begin = program.counts();
    for window in 0..WINDOWS {
        program.at(window * WINDOW_MS);
        for _ in 0..ROUNDS {
            program.flood(&syn, at_once);
            for frame in &transfer {
                assert_eq!(program.passes(frame, 50), 50, "window {window}");
            }
        }
    }
    let (packets, _) = differences(&begin, &program.counts());
    println!("{packets:?}");
    let (transfers, forged) = (WINDOWS * ROUNDS * 150, WINDOWS * ROUNDS * u64::from(at_once));
    let syns = packets["rule syn passed"];
    assert!(syns <= 20 * WINDOWS, "{syns}");
    assert_eq!(packets["rule syn refused source"], forged - syns);
    assert_eq!(packets["rule tcp passed"], transfers + syns);
    assert_eq!(packets["admitted"], transfers + syns);
    assert_eq!(packets.get("rule tcp refused source"), None);
}

#[test]
fn a_table_full_of_sources_at_their_limits_keeps_each_and_leaves_newcomers_to_the_total() {
    require!(ready());
    const MANY: u32 = 2_000;
    const TOTAL: usize = 6_000;
    // Places for 512.
    let mut program = Program::with_buckets(64);
    program.apply(&policy().replace(
        &format!("source = {LIMIT}, prefix = 100_000"),
        &format!("source = 2, total = {TOTAL}"),
    ));
    let frames: Vec<Vec<u8>> = (0..MANY)
        .map(|n| udp(&std::net::Ipv4Addr::from(0x0a00_0001 + n * 257).to_string()))
        .collect();
    let mut passed = 0;
    let mut limited = Vec::new();
    for frame in &frames {
        let got = program.passes(frame, 3);
        passed += got;
        if got == 2 {
            limited.push(frame);
        }
    }
    let (packets, _) = differences(&Default::default(), &program.counts());
    println!("{} of {MANY} are limited; {packets:?}", limited.len());
    assert!(packets["rule udp crowded source"] > 0);
    assert!(passed <= TOTAL, "{passed}");
    assert!((450..=511).contains(&limited.len()), "{}: nearly all places", limited.len());
    for frame in &limited {
        assert_eq!(program.run(frame), Action::Drop, "who is at its limit stays there");
    }
    let more: usize = frames.iter().map(|frame| program.passes(frame, 3)).sum();
    let all = passed + more;
    assert!((TOTAL * 99 / 100..=TOTAL).contains(&all), "and the total holds: {all}");
}
