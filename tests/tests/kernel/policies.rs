//! A change of policy under the program's feet (promise D2).

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program};
use limiter_tests::require;

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

/// Two policies of which one refuses everything and the other nothing: a packet judged by a mixture
/// would be counted in neither way.
#[test]
fn no_packet_sees_half_of_a_policy() {
    require!(ready());
    let closed = UDP.replace("source = 20, prefix = 200", "source = 0");
    let open = "schema = 1\n";
    let mut program = Program::with_policy(open);
    for _ in 0..20 {
        program.apply(&closed);
        program.expect(&frame(), Action::Drop, &[("refused", 1), ("rule udp refused source", 1)]);
        program.apply(open);
        program.expect(&frame(), Action::Pass, &[("unmatched", 1)]);
    }
}
