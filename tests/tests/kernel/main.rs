//! The program in a real kernel, packet by packet: each test states the answer **and every counter**.
//! Needs root and `ip` and nothing else, so that it also runs alone in a virtual machine.

mod attach;
mod cpus;
mod crowds;
mod faults;
mod levels;
mod neighbours;
mod never_refused;
mod policies;
mod pressure;
mod shadow;
mod units;
mod windows;

use limiter_tests::require;
use limiter_tests::require::{Missing, root};
use limiter_userspace::datapath::{Datapath, Options};

/// What every test here needs.
fn ready() -> Result<(), Missing> {
    root()?;
    if limiter_userspace::datapath::is_built() {
        Ok(())
    } else {
        Err("the kernel program isn't in this binary: run `cargo xtask build` first".to_owned())
    }
}

/// One rule over all UDP.
const UDP: &str = r#"
schema = 1
[[rule]]
name = "udp"
match = [{ protocol = "udp" }]
limit = { source = 20, prefix = 200 }
window = "10s"
"#;

#[test]
fn the_verifier_needs_a_quarter_of_what_it_allows_at_most() {
    require!(ready());
    let program = limiter_tests::program::Program::load();
    let instructions = program.datapath().verified_instructions().unwrap_or(u32::MAX);
    println!("verified: {instructions} instructions");
    assert!(instructions <= 250_000, "{instructions}");
}

#[test]
fn the_kernel_takes_the_program_that_logs_too() {
    require!(ready());
    let options = Options { buckets: 1 << 10, test_clock: true, trace: true, ..Options::default() };
    let program = Datapath::private(options).unwrap_or_else(|error| panic!("{error}"));
    println!("verified: {:?} instructions", program.verified_instructions());
}

#[test]
fn without_a_policy_ip_passes_and_is_counted_as_such() {
    require!(ready());
    use limiter_tests::frame::Frame;
    use limiter_tests::program::{Action, Program};
    let program = Program::load();
    let frame = Frame::new().ipv4("192.0.2.1").udp(53).build();
    program.expect(&frame, Action::Pass, &[("no-policy", 1)]);
}
