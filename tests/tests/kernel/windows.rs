//! Fixed windows, aligned to the epoch (promise A3).

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program};
use limiter_tests::require;

use crate::{UDP, ready};

const PASSED: [(&str, u64); 2] = [("admitted", 1), ("rule udp passed", 1)];
const REFUSED: [(&str, u64); 2] = [("refused", 1), ("rule udp refused source", 1)];

fn frame() -> Vec<u8> {
    Frame::new().ipv4("192.0.2.1").udp(9).payload(30).build()
}

#[test]
fn twice_the_limit_can_pass_across_an_edge_and_no_more() {
    require!(ready());
    let mut program = Program::with_policy(UDP);
    program.at(9_900);
    for _ in 0..20 {
        program.expect(&frame(), Action::Pass, &PASSED);
    }
    program.expect(&frame(), Action::Drop, &REFUSED);
    program.at(10_100);
    for _ in 0..20 {
        program.expect(&frame(), Action::Pass, &PASSED);
    }
    program.expect(&frame(), Action::Drop, &REFUSED);
}

#[test]
fn a_window_ends_at_its_edge_to_the_tick() {
    require!(ready());
    let mut program = Program::with_policy(UDP);
    program.at(0);
    assert_eq!(program.passes(&frame(), 25), 20);
    program.at(9_999);
    program.expect(&frame(), Action::Drop, &REFUSED);
    program.at(10_000);
    program.expect(&frame(), Action::Pass, &PASSED);
}

#[test]
fn a_clock_that_steps_back_does_not_reopen_a_window() {
    require!(ready());
    let mut program = Program::with_policy(UDP);
    program.at(9_900);
    assert_eq!(program.passes(&frame(), 25), 20);
    program.at(10_000);
    assert_eq!(program.passes(&frame(), 25), 20);
    // Another CPU, late by 200 ms: it must neither begin the old window again nor add to the new one.
    program.at(9_800);
    program.expect(&frame(), Action::Drop, &REFUSED);
    program.at(10_100);
    program.expect(&frame(), Action::Drop, &REFUSED);
}

#[test]
fn windows_from_100_ms_to_one_hour_hold_their_limit_each_time() {
    require!(ready());
    for (window, length) in [("100ms", 100), ("300ms", 300), ("1s", 1_000), ("1h", 3_600_000)] {
        let policy = UDP.replace("\"10s\"", &format!("{window:?}"));
        let mut program = Program::with_policy(&policy);
        for start in [0, length, 2 * length] {
            program.at(start);
            assert_eq!(program.passes(&frame(), 21), 20, "{window} at {start} ms");
            program.at(start + length - 1);
            assert_eq!(program.passes(&frame(), 1), 0, "{window} before its end");
        }
    }
}

#[test]
fn a_key_that_comes_back_after_the_18_bits_of_its_end_wrapped_has_its_full_limit() {
    require!(ready());
    let mut program = Program::with_policy(UDP);
    program.at(0);
    assert_eq!(program.passes(&frame(), 21), 20);
    // 2^18 ticks of 100 ms are 26,214.4 s.
    for later in [26_200_000, 26_210_000, 26_220_000, 52_430_000] {
        program.at(later);
        assert_eq!(program.passes(&frame(), 21), 20, "{later} ms later");
    }
}
