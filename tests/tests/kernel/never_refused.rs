//! What is never refused, and what only pretends to be it (promise A15), under the strictest policy.

use limiter_tests::frame::{Flags, Frame};
use limiter_tests::program::{Action, Program};
use limiter_tests::require;

use crate::ready;

/// Refuses every IP packet.
const NOTHING: &str = r#"
schema = 1
[[rule]]
name = "all"
match = [{ protocol = "any" }]
limit = { source = 0 }
window = "1s"
"#;

#[test]
fn a_link_stays_alive_under_a_policy_that_refuses_everything() {
    require!(ready());
    let program = Program::with_policy(NOTHING);
    program.expect(&Frame::new().arp().build(), Action::Pass, &[("arp", 1)]);
    program.expect(&Frame::new().vlan(3).arp().build(), Action::Pass, &[("arp", 1)]);
    let lldp = Frame::new().other(0x88cc, vec![0; 46]).build();
    program.expect(&lldp, Action::Pass, &[("not-ip", 1)]);
    for message in 133..=137 {
        let frame = Frame::new().ipv6("fe80::1").icmpv6(message, 255).build();
        program.expect(&frame, Action::Pass, &[("neighbour-discovery", 1)]);
    }
    for message in [130, 131, 132, 143] {
        let frame = Frame::new().ipv6("fe80::1").hop_by_hop().icmpv6(message, 1).build();
        program.expect(&frame, Action::Pass, &[("multicast-listener", 1)]);
    }
}

#[test]
fn forged_neighbour_discovery_is_ordinary_icmpv6() {
    require!(ready());
    let program = Program::with_policy(NOTHING);
    let refused = [("refused", 1), ("rule all refused source", 1)];
    for frame in [
        Frame::new().ipv6("2001:db8::1").icmpv6(135, 64).build(),
        Frame::new().ipv6("2001:db8::1").icmpv6(138, 255).build(),
        Frame::new().ipv6("2001:db8::1").hop_by_hop().icmpv6(143, 1).build(),
        Frame::new().ipv6("2001:db8::1").fragment(0, true).icmpv6(135, 255).build(),
    ] {
        program.expect(&frame, Action::Drop, &refused);
    }
}

#[test]
fn every_ip_protocol_can_be_limited() {
    require!(ready());
    let program = Program::with_policy(NOTHING);
    for number in 0..=255 {
        let frame = Frame::new().ipv4("192.0.2.1").protocol(number, vec![0; 40]).build();
        assert_eq!(program.run(&frame), Action::Drop, "IPv4 protocol {number}");
    }
    for frame in [
        Frame::new().ipv4("192.0.2.1").tcp(80, Flags::SYN).build(),
        Frame::new().ipv6("2001:db8::1").protocol(132, vec![0; 40]).build(),
        Frame::new().ipv6("2001:db8::1").protocol(47, vec![0; 40]).build(),
        Frame::new().ipv6("2001:db8::1").protocol(50, vec![0; 40]).build(),
        Frame::new().ipv6("2001:db8::1").icmpv6(128, 64).build(),
    ] {
        program.expect(&frame, Action::Drop, &[("refused", 1), ("rule all refused source", 1)]);
    }
}
