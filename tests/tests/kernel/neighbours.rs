//! Heavy use by one key never changes the verdict of an unrelated one (promise A11), whatever the two share:
//! a bucket and its cache line, or anything that a key's hash picks.

use std::net::Ipv4Addr;

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program};
use limiter_tests::require;
use limiter_tests::scale::scaled;

use crate::ready;

/// Packets of the heavy source in one window.
const HEAVY: u64 = 200_000;
/// Packets of each neighbour, of which as many as its limit pass.
const OFFERED: usize = 25;
const LIMIT: usize = 20;

/// Two rules, so that the heavy source's limit can be another one: UDP ports 1 and 2.
fn policy(heavy: &str, limit: usize) -> String {
    let rule = |name, port, limit: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nmatch = [{{ protocol = \"udp\", ports = [{port}] }}]\n\
             limit = {{ source = {limit} }}\nwindow = \"10s\"\n"
        )
    };
    let rules = [rule("heavy", 1, heavy), rule("others", 2, &limit.to_string())];
    format!("schema = 1\n{}", rules.concat())
}

fn from(source: Ipv4Addr, port: u16) -> Vec<u8> {
    Frame::new().ipv4(source).udp(port).build()
}

fn heavy() -> Vec<u8> {
    from(Ipv4Addr::new(192, 0, 2, 1), 1)
}

fn neighbours(count: u32) -> Vec<Vec<u8>> {
    let address =
        |n: u32| Ipv4Addr::from(0x0a00_0001_u32.wrapping_add(n.wrapping_mul(0x0100_1003)));
    (0..count).map(|n| from(address(n), 2)).collect()
}

/// The n-th packet of each, heavy use before and after each of them.
fn beside_heavy_use(program: &Program, others: &[Vec<u8>], offered: usize) -> Vec<Vec<Action>> {
    let (heavy, mut verdicts) = (heavy(), vec![Vec::new(); others.len()]);
    let at_once = u32::try_from(scaled(HEAVY) / offered as u64).unwrap_or(u32::MAX);
    for _ in 0..offered {
        program.flood(&heavy, at_once);
        for (other, verdicts) in others.iter().zip(&mut verdicts) {
            verdicts.push(program.run(other));
            let _ = program.run(&heavy);
        }
    }
    verdicts
}

fn alone(limit: usize, offered: usize) -> Vec<Action> {
    (0..offered).map(|n| if n < limit { Action::Pass } else { Action::Drop }).collect()
}

/// What the heavy source may: nearly nothing, a part, all, anything.
const MAY: [&str; 4] = ["1", "100_000", "4_000_000", "\"unlimited\""];

/// In a new window each.
fn whatever_it_may(program: &mut Program, limit: usize, mut check: impl FnMut(&Program, &str)) {
    for (window, may) in (0..).zip(MAY) {
        program.at(window * 20_000);
        program.apply(&policy(may, limit));
        check(program, may);
    }
}

#[test]
fn heavy_use_in_the_same_cache_line_changes_no_verdict() {
    require!(ready());
    // One bucket: whoever is in the table is in this line.
    let mut program = Program::with_buckets(1);
    whatever_it_may(&mut program, LIMIT, |program, may| {
        for verdicts in beside_heavy_use(program, &neighbours(4), OFFERED) {
            assert_eq!(verdicts, alone(LIMIT, OFFERED), "the heavy one may {may}");
        }
    });
}

#[test]
fn heavy_use_changes_no_verdict_of_ten_thousand_others() {
    require!(ready());
    // Enough to meet the heavy source in everything that a hash picks; too few to meet eight others in one
    // bucket, or one with the same fingerprint (once in 20,000 runs).
    let others = neighbours(u32::try_from(scaled(10_000)).unwrap_or(u32::MAX));
    let mut program = Program::with_buckets(1 << 18);
    whatever_it_may(&mut program, LIMIT, |program, may| {
        let verdicts = beside_heavy_use(program, &others, OFFERED);
        let wrong = verdicts.iter().filter(|verdicts| **verdicts != alone(LIMIT, OFFERED)).count();
        assert_eq!(wrong, 0, "of {}, where the heavy one may {may}", others.len());
    });
}

#[test]
fn heavy_use_costs_a_busy_neighbour_no_more_than_tokens_taken_ahead() {
    require!(ready());
    const BUSY: usize = 1_000;
    let mut program = Program::with_buckets(1);
    whatever_it_may(&mut program, BUSY, |program, may| {
        let verdicts = beside_heavy_use(program, &neighbours(1), BUSY + 100);
        let passed = verdicts[0].iter().filter(|verdict| **verdict == Action::Pass).count();
        assert!((BUSY * 98 / 100..=BUSY).contains(&passed), "{passed}, the heavy one may {may}");
        let first = verdicts[0].iter().position(|verdict| *verdict == Action::Drop);
        assert_eq!(first, Some(passed), "who was refused once stays so until the window ends");
    });
}
