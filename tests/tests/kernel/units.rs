//! What a rule counts: packets, or bytes of whole frames (promise A6 as far as built).

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program, on_cpu};
use limiter_tests::require;

use crate::{UDP, ready};

fn bytes(limit: &str) -> String {
    UDP.replace("source = 20, prefix = 200", &format!("source = {limit}"))
        .replace("window", "unit = \"bytes\"\nwindow")
}

fn of_length(length: usize) -> Vec<u8> {
    let frame = Frame::new().ipv4("192.0.2.1").udp(9).payload(length - 42).build();
    assert_eq!(frame.len(), length);
    frame
}

#[test]
fn a_byte_limit_is_met_to_the_byte() {
    require!(ready());
    let program = Program::with_policy(&bytes("10_000"));
    assert_eq!(program.passes(&of_length(1_500), 10), 6);
    // 1,000 bytes are left: too little for 1,001.
    let refused = [("refused", 1), ("rule udp refused source", 1)];
    program.expect(&of_length(1_001), Action::Drop, &refused);
    program.expect(&of_length(1_000), Action::Pass, &[("admitted", 1), ("rule udp passed", 1)]);
    program.expect(&of_length(60), Action::Drop, &refused);
}

#[test]
fn a_jumbo_frame_in_several_buffers_counts_in_full() {
    require!(ready());
    let program = Program::with_policy(&bytes("20_000"));
    assert_eq!(program.passes(&of_length(9_000), 5), 2);
    program.expect(
        &of_length(2_001),
        Action::Drop,
        &[("refused", 1), ("rule udp refused source", 1)],
    );
}

#[test]
fn a_large_byte_limit_is_met_to_a_quantum_though_it_counts_in_them() {
    require!(ready());
    // 50 MB need quanta of 16 bytes: a claim for 1,000 bytes takes 1,008, and the ticket keeps the 8.
    let program = Program::with_policy(&bytes("\"50MB\""));
    let frame = of_length(1_000);
    // On one CPU: what another had claimed ahead would be missing.
    let passed = on_cpu(0, || program.passes(&frame, 51_000));
    assert_eq!(passed, 50_000);
}

#[test]
fn zero_refuses_everything_and_unlimited_only_counts() {
    require!(ready());
    let zero = UDP.replace("source = 20, prefix = 200", "source = 0");
    let frame = of_length(60);
    Program::with_policy(&zero).expect(
        &frame,
        Action::Drop,
        &[("refused", 1), ("rule udp refused source", 1)],
    );
    let unlimited = UDP.replace("source = 20, prefix = 200", "source = \"unlimited\"");
    let program = Program::with_policy(&unlimited);
    assert_eq!(program.passes(&frame, 1_000), 1_000);
}
