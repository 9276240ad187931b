//! A change of policy under the program's feet (promise D2).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program, differences, on_cpu};
use limiter_tests::require;
use limiter_tests::require::cpus;

use crate::{UDP, ready};

fn frame() -> Vec<u8> {
    Frame::new().ipv4("192.0.2.1").udp(9).build()
}

#[test]
fn an_unchanged_policy_applied_again_refills_nothing() {
    require!(ready());
    let mut program = Program::with_policy(UDP);
    assert_eq!(program.passes(&frame(), 15), 15);
    program.apply(UDP);
    assert_eq!(program.passes(&frame(), 10), 5);
}

#[test]
fn a_changed_limit_binds_keys_that_exist() {
    require!(ready());
    let mut program = Program::with_policy(UDP);
    assert_eq!(program.passes(&frame(), 15), 15);
    // Lowered below what was used: refused, and nothing underflows.
    program.apply(&UDP.replace("source = 20", "source = 10"));
    assert_eq!(program.passes(&frame(), 5), 0);
    // Raised after refusals: those were not counted as use.
    program.apply(&UDP.replace("source = 20", "source = 30"));
    assert_eq!(program.passes(&frame(), 50), 15);
}

#[test]
fn rules_keep_their_counts_when_others_come_go_and_change_places() {
    require!(ready());
    let other = r#"
[[rule]]
name = "icmp"
match = [{ protocol = "icmp" }]
limit = { source = 1 }
window = "1s"
"#;
    let mut program = Program::with_policy(UDP);
    assert_eq!(program.passes(&frame(), 15), 15);
    let before_udp = UDP.replacen("[[rule]]", &format!("{other}[[rule]]"), 1);
    for policy in [format!("{UDP}{other}"), before_udp, UDP.to_owned()] {
        program.apply(&policy);
    }
    let passed = [("admitted", 1), ("rule udp passed", 1)];
    for _ in 0..5 {
        program.expect(&frame(), Action::Pass, &passed);
    }
    program.expect(&frame(), Action::Drop, &[("refused", 1), ("rule udp refused source", 1)]);
}

#[test]
fn a_rule_of_another_window_counts_on_its_own() {
    require!(ready());
    let mut program = Program::with_policy(UDP);
    assert_eq!(program.passes(&frame(), 25), 20);
    program.apply(&UDP.replace("\"10s\"", "\"1s\""));
    assert_eq!(program.passes(&frame(), 25), 20);
}

/// A rule with two matches, and its opposite: TCP is closed and UDP open, or the other way round. A
/// packet judged by the classes of one and the rules of the other would be in a row of its own.
const CLOSED_TCP: &str = r#"
schema = 1
[[rule]]
name = "tcp"
match = [{ protocol = "tcp" }]
limit = { source = 0 }
window = "1s"
[[rule]]
name = "udp"
match = [{ protocol = "udp" }]
limit = { source = "unlimited" }
window = "1s"
"#;

#[test]
fn no_packet_sees_half_of_a_policy_while_another_thread_applies_the_next() {
    require!(ready(), cpus(2));
    let mut program = Program::with_policy(CLOSED_TCP);
    let closed_udp = CLOSED_TCP.replace("tcp", "TCP").replace("udp", "tcp").replace("TCP", "udp");
    let before = program.counts();
    let (frame, stop) = (frame(), AtomicBool::new(false));
    let runner = program.runner_owned();
    let sent = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            on_cpu(1, || {
                while !stop.load(Ordering::Relaxed) {
                    let _ = runner.passes(&frame, 100);
                    sent += 100;
                }
            });
            sent
        });
        for _ in 0..50 {
            program.apply(&closed_udp);
            program.apply(CLOSED_TCP);
        }
        stop.store(true, Ordering::Relaxed);
        sender.join().unwrap_or_default()
    });
    let (packets, _) = differences(&before, &program.counts());
    let count = |name: &str| packets.get(name).copied().unwrap_or_default();
    // Under one policy a UDP packet passes the rule "udp", under the other that rule refuses it.
    assert_eq!(count("admitted"), count("rule udp passed"), "{packets:?}");
    assert_eq!(count("refused"), count("rule udp refused source"), "{packets:?}");
    assert_eq!(count("admitted") + count("refused"), sent, "{packets:?}");
    assert!(count("admitted") > 0 && count("refused") > 0, "{packets:?}");
    assert!(packets.keys().all(|name| !name.contains("tcp")), "{packets:?}");
}
