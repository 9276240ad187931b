//! Headers made to slip past a rule: reports about neighbouring tools, each as a packet that must not.

use limiter_tests::frame::{Flags, Frame};
use limiter_tests::program::{Action, Program};
use limiter_tests::require;

use crate::ready;

/// DNS is closed, everything else is open: who gets UDP/53 through has found a gap.
const NO_DNS: &str = r#"
schema = 1
[[rule]]
name = "dns"
match = [{ protocol = "udp", ports = [53] }]
limit = { source = 0 }
window = "1s"
"#;

/// The same for new TCP connections to port 80.
const NO_WEB: &str = r#"
schema = 1
[[rule]]
name = "web"
match = [{ protocol = "tcp", packets = "tcp-syn", ports = [80] }]
limit = { source = 0 }
window = "1s"
"#;

const UNMATCHED: [(&str, u64); 1] = [("unmatched", 1)];
const DNS: [(&str, u64); 2] = [("refused", 1), ("rule dns refused source", 1)];
const WEB: [(&str, u64); 2] = [("refused", 1), ("rule web refused source", 1)];

#[test]
fn up_to_four_vlan_tags_hide_nothing_and_a_fifth_is_a_fault() {
    require!(ready());
    let program = Program::with_policy(NO_DNS);
    let tagged = [
        Frame::new().ipv4("192.0.2.1").udp(53),
        Frame::new().vlan(1).ipv4("192.0.2.1").udp(53),
        Frame::new().service_vlan(2).vlan(1).ipv4("192.0.2.1").udp(53),
        Frame::new().tag(0x9100, 3).service_vlan(2).vlan(1).ipv4("192.0.2.1").udp(53),
        Frame::new().vlan(4).vlan(3).vlan(2).vlan(1).ipv6("2001:db8::1").udp(53),
    ];
    for frame in tagged {
        program.expect(&frame.build(), Action::Drop, &DNS);
    }
    let five =
        Frame::new().vlan(5).vlan(4).vlan(3).vlan(2).vlan(1).ipv4("192.0.2.1").udp(53).build();
    let changes = [("unreadable-passed", 1), ("fault vlan-depth", 1)];
    program.expect(&five, Action::Pass, &changes);
}

#[test]
fn ipv4_options_do_not_shift_the_ports() {
    require!(ready());
    let program = Program::with_policy(NO_DNS);
    for words in 0..=10 {
        let frame = Frame::new().ipv4("192.0.2.1").options(words).udp(53).build();
        program.expect(&frame, Action::Drop, &DNS);
        let frame = Frame::new().ipv4("192.0.2.1").options(words).udp(54).build();
        program.expect(&frame, Action::Pass, &UNMATCHED);
    }
}

#[test]
fn extension_headers_do_not_hide_the_transport_header() {
    require!(ready());
    let web = Program::with_policy(NO_WEB);
    let v6 = || Frame::new().ipv6("2001:db8::1");
    for frame in [
        v6().destination_options(0).tcp(80, Flags::SYN),
        v6().destination_options(255).tcp(80, Flags::SYN),
        v6().hop_by_hop().destination_options(1).tcp(80, Flags::SYN),
        v6().authentication(4).tcp(80, Flags::SYN),
        v6().extension(43, 2)
            .extension(135, 1)
            .extension(139, 1)
            .extension(140, 1)
            .tcp(80, Flags::SYN),
    ] {
        web.expect(&frame.build(), Action::Drop, &WEB);
    }
}

#[test]
fn a_chain_beyond_the_budget_does_not_forge_ports() {
    require!(ready());
    let chain = |headers: u8| {
        let mut frame = Frame::new().ipv6("2001:db8::1");
        for _ in 0..headers {
            frame = frame.destination_options(0);
        }
        frame.udp(53).build()
    };
    let program = Program::with_policy(NO_DNS);
    program.expect(&chain(6), Action::Drop, &DNS);
    // Seven: nobody knows what comes then, least of all that it is UDP.
    program.expect(&chain(7), Action::Pass, &[("unmatched", 1), ("fault header-depth", 1)]);

    // But rules without ports judge it, whatever their protocol.
    let no_udp = NO_DNS.replace(", ports = [53]", "");
    let program = Program::with_policy(&no_udp);
    program.expect(
        &chain(7),
        Action::Drop,
        &[("refused", 1), ("rule dns refused source", 1), ("fault header-depth", 1)],
    );
}

#[test]
fn an_unknown_next_header_is_itself_the_protocol() {
    require!(ready());
    let program = Program::with_policy(NO_WEB);
    let looks_like_tcp = Frame::new().tcp(80, Flags::SYN).build().split_off(14);
    let frame = Frame::new().ipv6("2001:db8::1").protocol(253, looks_like_tcp).build();
    program.expect(&frame, Action::Pass, &UNMATCHED);
}

#[test]
fn later_fragments_are_judged_without_ports_and_never_as_new_connections() {
    require!(ready());
    let udp = NO_DNS.replace(", ports = [53]", "");
    for fragment in [
        Frame::new().ipv4("192.0.2.1").fragment(1, true).udp(53).build(),
        Frame::new().ipv4("192.0.2.1").fragment(185, false).udp(53).build(),
        Frame::new().ipv6("2001:db8::1").fragment(1, false).udp(53).build(),
    ] {
        Program::with_policy(NO_DNS).expect(&fragment, Action::Pass, &UNMATCHED);
        Program::with_policy(&udp).expect(&fragment, Action::Drop, &DNS);
    }
    let program = Program::with_policy(NO_WEB);
    let fragment = Frame::new().ipv4("192.0.2.1").fragment(1, true).tcp(80, Flags::SYN).build();
    program.expect(&fragment, Action::Pass, &UNMATCHED);
}

#[test]
fn first_fragments_and_dont_fragment_have_their_ports() {
    require!(ready());
    let program = Program::with_policy(NO_DNS);
    for frame in [
        Frame::new().ipv4("192.0.2.1").fragment(0, true).udp(53).build(),
        Frame::new().ipv4("192.0.2.1").dont_fragment().udp(53).build(),
        Frame::new().ipv6("2001:db8::1").fragment(0, true).udp(53).build(),
        Frame::new().ipv6("2001:db8::1").fragment(0, false).udp(53).build(),
    ] {
        program.expect(&frame, Action::Drop, &DNS);
    }
}

#[test]
fn a_later_fragment_behind_an_extension_header_is_of_unknown_protocol() {
    require!(ready());
    // Its next header says "destination options", whose bytes lie in the first fragment only.
    let frame =
        Frame::new().ipv6("2001:db8::1").fragment(1, false).destination_options(0).udp(53).build();
    Program::with_policy(NO_DNS).expect(&frame, Action::Pass, &UNMATCHED);
    let udp = NO_DNS.replace(", ports = [53]", "");
    Program::with_policy(&udp).expect(&frame, Action::Drop, &DNS);
}

#[test]
fn every_cut_of_a_packet_is_a_fault_or_refused_but_never_a_pass_by_the_rules() {
    require!(ready());
    let no_udp = NO_DNS.replace(", ports = [53]", "");
    for whole in [
        Frame::new().vlan(1).ipv4("192.0.2.1").options(2).udp(53).build(),
        Frame::new().ipv6("2001:db8::1").hop_by_hop().destination_options(0).udp(53).build(),
    ] {
        let program = Program::with_policy(&no_udp);
        for length in 14..whole.len() {
            let before = program.counts();
            let action = program.run(&whole[..length]);
            let (changes, _) = limiter_tests::program::differences(&before, &program.counts());
            let fault = changes.get("fault cut-off") == Some(&1);
            // Without an address there is nobody to limit; a cut tag leaves no IP packet.
            let known = changes.contains_key("unreadable-passed") || changes.contains_key("not-ip");
            assert!(action == Action::Drop || known, "{length} bytes: {changes:?}");
            assert!(fault || action == Action::Drop, "{length} bytes: {changes:?}");
        }
    }
}

#[test]
fn each_fault_has_a_verdict_of_its_own_in_the_policy() {
    require!(ready());
    let cut = || {
        let mut frame = Frame::new().ipv4("192.0.2.1").udp(53).build();
        frame.truncate(36);
        frame
    };
    let malformed = || {
        let mut frame = Frame::new().ipv4("192.0.2.1").udp(53).build();
        frame[14] = 0x44;
        frame
    };
    let deep =
        Frame::new().vlan(5).vlan(4).vlan(3).vlan(2).vlan(1).ipv4("192.0.2.1").udp(53).build();
    let mut chain = Frame::new().ipv6("2001:db8::1");
    for _ in 0..7 {
        chain = chain.destination_options(0);
    }
    let faults = [
        ("cut-off", cut()),
        ("malformed", malformed()),
        ("vlan-depth", deep),
        ("header-depth", chain.udp(53).build()),
    ];
    for (fault, frame) in faults {
        let fault_count = format!("fault {fault}");
        let drop = format!("{NO_WEB}\n[parse]\n{fault} = \"drop\"\n");
        Program::with_policy(&drop).expect(
            &frame,
            Action::Drop,
            &[("unreadable-dropped", 1), (&fault_count, 1)],
        );
        let pass = drop.replace("\"drop\"", "\"pass\"");
        Program::with_policy(&pass).expect(
            &frame,
            Action::Pass,
            &[("unreadable-passed", 1), (&fault_count, 1)],
        );
    }
}

#[test]
fn a_syn_is_a_syn_with_other_flags_and_an_answer_is_none() {
    require!(ready());
    let program = Program::with_policy(NO_WEB);
    let tcp = |flags| Frame::new().ipv4("192.0.2.1").tcp(80, flags).build();
    program.expect(&tcp(Flags::SYN), Action::Drop, &WEB);
    program.expect(&tcp(Flags::SYN | Flags::FIN), Action::Drop, &WEB);
    for flags in [Flags::SYN | Flags::ACK, Flags::ACK, Flags::RST, Flags::FIN | Flags::ACK] {
        program.expect(&tcp(flags), Action::Pass, &UNMATCHED);
    }
}
