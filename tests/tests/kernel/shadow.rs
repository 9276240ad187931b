//! Shadow rules (promise D4): seen, counted, without effect.

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program};
use limiter_tests::require;

use crate::ready;

const SHADOWED: &str = r#"
schema = 1
[[rule]]
name = "real"
match = [{ protocol = "udp" }]
limit = { source = 4 }
window = "10s"
[[rule]]
name = "trial"
match = [{ protocol = "udp" }]
limit = { source = 2, prefix = 100 }
window = "10s"
mode = "shadow"
"#;

#[test]
fn a_shadow_rule_says_what_it_would_refuse_and_takes_nothing_from_the_enforced() {
    require!(ready());
    let program = Program::with_policy(SHADOWED);
    let frame = Frame::new().ipv4("192.0.2.1").udp(9).build();
    for _ in 0..2 {
        let both = [("admitted", 1), ("rule real passed", 1), ("rule trial passed", 1)];
        program.expect(&frame, Action::Pass, &both);
    }
    for _ in 0..2 {
        let seen =
            [("admitted", 1), ("rule real passed", 1), ("rule trial would refuse source", 1)];
        program.expect(&frame, Action::Pass, &seen);
    }
    // What is refused anyway isn't the shadow rule's to judge.
    program.expect(&frame, Action::Drop, &[("refused", 1), ("rule real refused source", 1)]);
}

#[test]
fn a_policy_of_shadow_rules_refuses_nobody() {
    require!(ready());
    let policy =
        SHADOWED.replace("limit = { source = 4 }", "limit = { source = 0 }\nmode = \"shadow\"");
    let program = Program::with_policy(&policy);
    let frame = Frame::new().ipv6("2001:db8::1").udp(9).build();
    let seen = [("admitted", 1), ("rule real would refuse source", 1), ("rule trial passed", 1)];
    program.expect(&frame, Action::Pass, &seen);
}
