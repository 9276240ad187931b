//! The number of CPUs changes nothing (promise A9): one source, whichever way its packets spread.

use std::thread;

use limiter_tests::frame::Frame;
use limiter_tests::program::{Changes, Program, differences, on_cpu};
use limiter_tests::require;
use limiter_tests::require::cpus;

use limiter_userspace::telemetry::counts::Counts;

use crate::ready;

const LIMIT: usize = 1_000;

fn policy() -> String {
    format!(
        "schema = 1\n[[rule]]\nname = \"udp\"\nmatch = [{{ protocol = \"udp\" }}]\n\
         limit = {{ source = {LIMIT}, prefix = 100_000, total = 1_000_000 }}\nwindow = \"10s\"\n"
    )
}

/// Sends by turns: `turns` says which CPU takes the next packet.
fn passed(turns: impl Iterator<Item = usize> + Clone) -> usize {
    let program = Program::with_policy(&policy());
    let frame = Frame::new().ipv4("192.0.2.1").udp(9).build();
    let before = program.counts();
    let passed: usize = turns.clone().map(|cpu| on_cpu(cpu, || program.passes(&frame, 1))).sum();
    assert_counted(&program, &before, passed, turns.count());
    passed
}

/// Every counter, over all CPUs: what passed, the rest refused by the source's limit, nothing else. Two
/// CPUs at once may also find a word changed eight times running, which is a refusal of its own.
fn assert_counted(program: &Program, before: &Counts, passed: usize, offered: usize) {
    let (mut packets, _) = differences(before, &program.counts());
    let contended = packets.remove("contended").unwrap_or(0);
    assert_eq!(packets.remove("rule udp contended").unwrap_or(0), contended);
    let (passed, refused) = (passed as u64, (offered - passed) as u64 - contended);
    let mut expected: Changes = [
        ("admitted", passed),
        ("refused", refused),
        ("rule udp passed", passed),
        ("rule udp refused source", refused),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    expected.retain(|_, count| *count > 0);
    assert_eq!(packets, expected);
}

/// What a CPU that falls silent may keep of a limit, on its ticket: less than a chunk.
const PARKED: usize = 7;

#[test]
fn one_source_gets_its_limit_however_its_packets_spread() {
    require!(ready(), cpus(2));
    let offered = 0..LIMIT + LIMIT / 5;
    assert_eq!(passed(offered.clone().map(|_| 0)), LIMIT, "all on one");
    assert_eq!(passed(offered.clone().map(|n| n % 2)), LIMIT, "alternating");
    assert_eq!(passed(offered.clone().map(|n| usize::from(n % 10 == 0))), LIMIT, "9:1");
    for change in (0..LIMIT + LIMIT / 10).step_by(33) {
        let passed = passed(offered.clone().map(|n| usize::from(n >= change)));
        assert!(
            (LIMIT - PARKED..=LIMIT).contains(&passed),
            "one CPU, from packet {change} the other: {passed}"
        );
    }
}

#[test]
fn two_cpus_at_once_pass_exactly_the_limit_in_every_window() {
    require!(ready(), cpus(2));
    let mut program = Program::with_policy(&policy());
    let frame = Frame::new().ipv4("192.0.2.1").udp(9).build();
    for window in 0..20 {
        program.at(window * 10_000);
        let before = program.counts();
        let runner = program.runner();
        let frame = &frame;
        let passed: usize = thread::scope(|scope| {
            let halves =
                [0, 1].map(|cpu| scope.spawn(move || on_cpu(cpu, || runner.passes(frame, LIMIT))));
            halves.map(|half| half.join().unwrap_or_default()).iter().sum()
        });
        assert_eq!(passed, LIMIT, "window {window}");
        assert_counted(&program, &before, passed, 2 * LIMIT);
    }
}
