//! Several CPUs, each with its own tickets, over one table. However packets spread, no pool passes more
//! than its limit in a window, and what lies idle stays small.

mod host;

use proptest::prelude::*;

use super::super::*;
use crate::clock::{NANOS_PER_TICK, WindowLength};
use crate::key::Key;
use crate::layout::{RuleEntry, Unit};
use crate::quantum::Quantum;
use host::Host;

/// An edge of all windows.
const START: u64 = 18_000_000_000 * NANOS_PER_TICK;

fn level_of((tag, bits): (u8, u64)) -> Level {
    Key::from_parts(tag, bits).unwrap().level()
}

/// Packets over 10 s, bytes in units of 16 over 1.5 s, single bytes over 2 s.
fn rules(limits: &[[Option<u32>; 3]]) -> Vec<RuleEntry> {
    let bytes = |shift| Unit::Bytes(Quantum::from_shift(shift).unwrap());
    let kinds = [(Unit::Packets, 100), (bytes(4), 15), (bytes(0), 20)];
    let numbered = (0_u32..).zip(limits).zip(kinds);
    numbered.map(|((row, limits), (unit, ticks))| rule(row, unit, ticks, *limits)).collect()
}

/// The same of packets only.
fn packet_rules(limits: &[[Option<u32>; 3]]) -> Vec<RuleEntry> {
    let numbered = (0_u32..).zip(limits).zip([100, 15, 20]);
    numbered.map(|((row, limits), ticks)| rule(row, Unit::Packets, ticks, *limits)).collect()
}

fn rule(row: u32, unit: Unit, ticks: u32, limits: [Option<u32>; 3]) -> RuleEntry {
    let window = WindowLength::from_ticks(ticks).unwrap();
    let rule = RuleEntry::new(row + 1, row, window, unit, row / 2);
    let limits = Level::ALL.into_iter().zip(limits);
    limits.fold(rule, |rule, (level, limit)| match limit {
        Some(limit) => rule.with_limit(level, limit),
        None => rule,
    })
}

fn some_limits() -> impl Strategy<Value = [Option<u32>; 3]> {
    let limit = |most: u32| prop::option::of(prop_oneof![0..most / 50, 0..most]);
    (limit(12_000), limit(6_000), limit(3_000))
        .prop_map(|(total, prefix, source)| [total, prefix, source])
}

/// Sources of two prefixes, each with packets of its own length (or of any).
fn source(number: u64) -> u64 {
    0x0a00_0000 | ((number % 2) << 8) | (number / 2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Bursts of any size from any source on any CPU, over several windows of any rule.
    #[test]
    fn no_pool_passes_more_than_its_limit_in_a_window(
        cpus in 1_u32..5,
        limits in prop::collection::vec(some_limits(), 1..4),
        bursts in prop::collection::vec(
            (0_usize..4, 0_u64..12, prop_oneof![Just(60_u32), Just(1_514), 60_u32..9_000], 1_u32..800, 0_u64..1_200),
            1..60,
        ),
    ) {
        let (host, mut now) = (Host::new(cpus, rules(&limits)), START);
        for (cpu, number, length, packets, pause) in bursts {
            now += pause * 1_000_000;
            for _ in 0..packets {
                host.packet(cpu % cpus as usize, source(number), length, now);
            }
        }
        for ((rule, key, _), passed) in host.passed.borrow().iter() {
            let (limit, _) = host.limits(*rule, level_of(*key));
            prop_assert!(*passed <= limit, "rule {rule}, {key:?}: {passed} of {limit}");
        }
        for ((rule, key, _), claimed) in host.claimed().iter() {
            let (_, limit) = host.limits(*rule, level_of(*key));
            prop_assert!(*claimed <= limit, "rule {rule}, {key:?}: {claimed} of {limit}");
        }
    }

    /// What was claimed and passed nobody, in one window of packets of one size: on the tickets of sources
    /// 1 % of what passed, on those of prefixes and totals 1 % of what they handed on.
    #[test]
    fn what_lies_idle_is_small(
        cpus in 1_u32..5,
        limits in prop::collection::vec(some_limits(), 1..2),
        bursts in prop::collection::vec((0_usize..4, 0_u64..12, 1_u32..1_500), 1..60),
    ) {
        let host = Host::new(cpus, rules(&limits));
        for (cpu, number, packets) in bursts {
            for _ in 0..packets {
                host.packet(cpu % cpus as usize, source(number), 60, START);
            }
        }
        let passed = host.passed.borrow();
        for (pool, claimed) in host.claimed().iter() {
            let passed = passed.get(pool).copied().unwrap_or(0);
            let idle = claimed - passed;
            let most = if level_of(pool.1) == Level::Source {
                passed / 100
            } else {
                passed / 100 + (passed + passed / 100) / 100
            };
            prop_assert!(idle <= most, "{pool:?}: {idle} idle, {passed} passed");
        }
    }

    /// All traffic on one CPU: nothing is lost to anybody. Each source sends until it is refused; then
    /// every packet was refused for a pool that had passed exactly its limit.
    #[test]
    fn on_one_cpu_the_limit_is_exact(
        limits in prop::collection::vec(some_limits(), 1..4).prop_filter("limited", |limits| {
            limits.iter().flatten().any(Option::is_some)
        }),
        sources in prop::collection::vec(0_u64..12, 1..9),
        cpus in 1_u32..64,
    ) {
        // Of bytes, what is left may be less than a packet.
        let host = Host::new(cpus, packet_rules(&limits));
        for number in sources {
            let refused = (0..14_000)
                .map(|_| host.packet(0, source(number), 60, START))
                .find(|taken| taken.why().is_some());
            let Some(refused) = refused else {
                continue;
            };
            let (limit, passed) = host.of(refused, source(number));
            prop_assert_eq!(passed, limit, "{:?}", refused);
        }
    }
}

/// All sources send on every CPU in turn until nobody passes any more. The refusals at the end.
fn exhaust(host: &Host, cpus: u32, sources: u64, burst: u32) -> Vec<(Taken, u64)> {
    loop {
        let everybody = (0..cpus as usize).flat_map(|cpu| (0..sources).map(move |it| (cpu, it)));
        let (mut passes, mut refusals) = (false, Vec::new());
        for (cpu, number) in everybody {
            for _ in 0..burst {
                let taken = host.packet(cpu, source(number), 60, START);
                match taken.why() {
                    None => passes = true,
                    Some(_) => refusals.push((taken, source(number))),
                }
            }
        }
        if !passes {
            return refusals;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Once everybody is refused everywhere: a source has had exactly its limit, a prefix or the total all
    /// of it but what lies on other CPUs' tickets for it, 1 % of what they handed on.
    #[test]
    fn who_is_refused_has_had_the_limit(
        cpus in 1_u32..5,
        limits in prop::collection::vec(some_limits(), 1..4).prop_filter("all limited", |limits| {
            limits.iter().any(|[total, _, source]| total.is_some() || source.is_some())
        }),
        sources in 1_u64..16,
        burst in 1_u32..200,
    ) {
        let host = Host::new(cpus, packet_rules(&limits));
        for (taken, source) in exhaust(&host, cpus, sources, burst) {
            let (limit, passed) = host.of(taken, source);
            let idle = if taken.level() == Level::Source { 0 } else { passed / 100 };
            prop_assert!(limit - passed <= idle, "{taken:?}: {passed} of {limit}");
        }
    }
}

#[test]
fn where_one_level_decides_all_of_its_limit_passes() {
    for (cpus, limits) in [
        (2, [Some(10_000), None, None]),
        (4, [Some(10_000), Some(6_000), None]),
        (4, [None, Some(1_000), Some(300)]),
        (4, [None, None, Some(5_000)]),
        (4, [Some(100_000), Some(60_000), Some(8_000)]),
    ] {
        let host = Host::new(cpus, packet_rules(&[limits]));
        for (taken, source) in exhaust(&host, cpus, 24, 9) {
            let (limit, passed) = host.of(taken, source);
            assert_eq!(passed, limit, "{cpus} CPUs, {limits:?}: {taken:?}");
        }
    }
}

/// A source's rule over 1.5 s refuses a long packet; the source's ticket has bytes left that it claimed of
/// the total over 2 s, whose window ends first.
#[test]
fn bytes_of_a_window_that_is_over_are_not_spent_in_the_next() {
    let bytes = Unit::Bytes(Quantum::ONE);
    let rules = vec![
        rule(0, bytes, 15, [None, None, Some(61_000)]),
        rule(1, bytes, 20, [Some(100_000), None, None]),
    ];
    let (host, tick) = (Host::new(2, rules), |tick: u64| START + tick * NANOS_PER_TICK);
    let passes = |cpu, number, length, now| {
        host.packet(cpu, source(number), length, tick(now)).why().is_none()
    };
    // Enough for a chunk of two: two long ones are claimed, a long one and a short one pass.
    assert!((0..200).all(|_| passes(0, 0, 60, 16)));
    assert!(passes(0, 0, 1_514, 16) && passes(0, 0, 60, 16));
    // Another CPU spends the rest of the source's.
    while passes(1, 0, 60, 16) {}
    assert!(!passes(0, 0, 1_514, 16));
    // The total's next window: another source spends it all, from another CPU.
    while passes(1, 2, 60, 21) {}
    while passes(1, 4, 60, 21) {}
    let more = (0..100).filter(|_| passes(0, 0, 60, 21)).count();
    let total = host.passed.borrow()[&(1, (0, 0), 18_000_000_040)];
    assert!(total <= 100_000, "{total} of 100,000, {more} packets too many");
}
