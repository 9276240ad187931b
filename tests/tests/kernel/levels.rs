//! Levels, and the order of judging (promises A2 and A8).

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program};
use limiter_tests::require;

use crate::{UDP, ready};

fn from(source: &str) -> Vec<u8> {
    Frame::new().ipv4(source).udp(9).build()
}

fn from_v6(source: &str) -> Vec<u8> {
    Frame::new().ipv6(source).udp(9).build()
}

#[test]
fn a_host_that_walks_through_its_64_is_one_source() {
    require!(ready());
    let program = Program::with_policy(UDP);
    for host in 0..20 {
        let frame = from_v6(&format!("2001:db8:1:1::{host:x}:{host:x}"));
        program.expect(&frame, Action::Pass, &[("admitted", 1), ("rule udp passed", 1)]);
    }
    let frame = from_v6("2001:db8:1:1:ffff:ffff:ffff:ffff");
    program.expect(&frame, Action::Drop, &[("refused", 1), ("rule udp refused source", 1)]);
    // The next /64 is another source.
    program.expect(
        &from_v6("2001:db8:1:2::1"),
        Action::Pass,
        &[("admitted", 1), ("rule udp passed", 1)],
    );
}

#[test]
fn ten_full_sources_exhaust_their_prefix_and_the_eleventh_is_refused_by_it() {
    require!(ready());
    for (inside, outside) in [
        (["192.0.2.1", "192.0.2.250"], "192.0.3.1"),
        (["2001:db8:1:1::1", "2001:db8:1:ffff::1"], "2001:db8:2::1"),
    ] {
        let program = Program::with_policy(UDP);
        let udp = |source: &str| {
            if source.contains(':') { from_v6(source) } else { from(source) }
        };
        let others = (0..9).map(|n| {
            if outside.contains(':') {
                format!("2001:db8:1:{n}0::1")
            } else {
                format!("192.0.2.{}", n + 10)
            }
        });
        for source in others.chain([inside[0].to_owned()]) {
            assert_eq!(program.passes(&udp(&source), 21), 20, "{source}");
        }
        program.expect(
            &udp(inside[1]),
            Action::Drop,
            &[("refused", 1), ("rule udp refused prefix", 1)],
        );
        program.expect(&udp(outside), Action::Pass, &[("admitted", 1), ("rule udp passed", 1)]);
    }
}

#[test]
fn a_refusal_by_the_source_debits_no_prefix() {
    require!(ready());
    // The source has no room at all, the prefix has 5: it must still have 5 afterwards.
    let policy = r#"
schema = 1
[[rule]]
name = "r"
match = [{ protocol = "udp" }]
limit = { source = 1, prefix = 6 }
window = "10s"
"#;
    let program = Program::with_policy(policy);
    program.expect(&from("192.0.2.1"), Action::Pass, &[("admitted", 1), ("rule r passed", 1)]);
    for _ in 0..50 {
        program.expect(
            &from("192.0.2.1"),
            Action::Drop,
            &[("refused", 1), ("rule r refused source", 1)],
        );
    }
    for host in 2..7 {
        let frame = from(&format!("192.0.2.{host}"));
        program.expect(&frame, Action::Pass, &[("admitted", 1), ("rule r passed", 1)]);
    }
    program.expect(
        &from("192.0.2.7"),
        Action::Drop,
        &[("refused", 1), ("rule r refused prefix", 1)],
    );
}

/// Two rules over the same packets, each with a small pool at another level.
const TWO: &str = r#"
schema = 1
[[rule]]
name = "first"
match = [{ protocol = "udp" }]
limit = { source = 3 }
window = "10s"
[[rule]]
name = "second"
match = [{ protocol = "udp" }]
limit = { total = 5, source = 4 }
window = "10s"
"#;

#[test]
fn totals_are_judged_before_sources_and_rules_in_their_order() {
    require!(ready());
    let program = Program::with_policy(TWO);
    let passed = [("admitted", 1), ("rule first passed", 1), ("rule second passed", 1)];
    for _ in 0..3 {
        program.expect(&from("192.0.2.1"), Action::Pass, &passed);
    }
    let refused = [("refused", 1), ("rule first refused source", 1)];
    program.expect(&from("192.0.2.1"), Action::Drop, &refused);
    for _ in 0..2 {
        program.expect(&from("192.0.2.2"), Action::Pass, &passed);
    }
    // Who was refused before is so for the reason found then, as long as it lasts.
    program.expect(&from("192.0.2.1"), Action::Drop, &refused);
    // Now the total of the second rule is spent, and is named before any source's limit.
    for source in ["192.0.2.2", "2001:db8::1"] {
        let frame = if source.contains(':') { from_v6(source) } else { from(source) };
        program.expect(&frame, Action::Drop, &[("refused", 1), ("rule second refused total", 1)]);
    }
}

#[test]
fn heavy_use_by_one_source_changes_nothing_for_another() {
    require!(ready());
    let program = Program::with_policy(UDP);
    assert_eq!(program.passes(&from("192.0.2.1"), 1_000), 20);
    for source in ["192.0.2.2", "198.51.100.1"] {
        assert_eq!(program.passes(&from(source), 25), 20, "{source}");
    }
}

#[test]
fn ipv4_and_ipv6_share_a_total_and_nothing_else() {
    require!(ready());
    let program = Program::with_policy(&UDP.replace("prefix = 200", "total = 30"));
    assert_eq!(program.passes(&from("0.0.0.1"), 25), 20);
    assert_eq!(program.passes(&from_v6("::1"), 25), 10);
}
