//! The program where it is to work: pinned, in the driver of an interface, judging frames that arrive.
//! Everywhere else in these tests it is run by hand.

use std::time::Duration;

use limiter_tests::frame::Frame;
use limiter_tests::net::{self, End, FrameSocket, Namespace, veth};
use limiter_tests::process::Home;
use limiter_tests::program::{Changes, Program, differences};
use limiter_tests::require;
use limiter_tests::require::tool;
use limiter_tests::wait::wait_for;
use limiter_userspace::datapath::Pins;
use limiter_userspace::datapath::attach::{Done, Guard, Mode, attach, detach, look};

use super::{UDP, ready};

/// Emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(20);

/// A veth pair: limiter at one end, a sender of frames at the other.
struct Wire {
    inside: Namespace,
    sender: FrameSocket,
    _outside: Namespace,
}

impl Wire {
    fn new() -> Self {
        let namespace = |purpose| Namespace::create(purpose).unwrap_or_else(|e| panic!("{e}"));
        let (inside, outside) = (namespace("driver"), namespace("sender"));
        let end = |namespace, interface| End { namespace, interface, addresses: &[] };
        veth(end(&inside, "lim0"), end(&outside, "out0")).unwrap_or_else(|e| panic!("{e}"));
        let sender = FrameSocket::open(&outside, "out0").unwrap_or_else(|e| panic!("{e}"));
        Self { inside, sender, _outside: outside }
    }

    /// Frames arrive in the kernel's own time: waits until all are counted.
    #[track_caller]
    fn expect(&self, program: &Program, frame: &[u8], times: u64, changes: &[(&str, u64)]) {
        let before = program.counts();
        (0..times).for_each(|_| self.sender.send(frame).unwrap_or_else(|e| panic!("{e}")));
        let expected: Changes = changes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let counted = || differences(&before, &program.counts()).0;
        wait_for(PATIENCE, || (counted() == expected).then_some(()));
        assert_eq!(counted(), expected);
    }
}

#[test]
fn it_goes_into_a_driver_judges_what_arrives_is_replaced_and_leaves() {
    require!(ready(), tool("ip"));
    let (wire, home) = (Wire::new(), Home::create("driver").unwrap_or_else(|e| panic!("{e}")));
    let pins = Pins::new(home.pins());
    let put = || wire.inside.run(|| attach(&pins, "lim0", Mode::Native));
    let put = || put().unwrap_or_else(|e| panic!("{e}")).unwrap_or_else(|e| panic!("{e}"));
    let frame = Frame::new().ipv4("192.0.2.1").udp(53).build();

    let mut program = Program::pinned(&pins);
    program.apply(UDP);
    assert_eq!(put(), Done::Attached);
    assert_eq!(guard(&wire, &pins).mode, Some(Mode::Native));
    let seen = net::attached(&wire.inside, "lim0").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(seen.map(|seen| seen.mode), Some(net::Mode::Native), "as `ip` sees it");
    let (passed, refused) = (("rule udp passed", 20), ("rule udp refused source", 10));
    let changes = [("admitted", 20), ("refused", 10), passed, refused];
    wire.expect(&program, &frame, 30, &changes);

    // The next program finds the maps and the link, and what was counted.
    let program = Program::pinned(&pins);
    assert_eq!(put(), Done::Replaced);
    wire.expect(&program, &frame, 5, &[("refused", 5), ("rule udp refused source", 5)]);

    let left = wire.inside.run(|| detach(&pins, "lim0")).unwrap_or_else(|e| panic!("{e}"));
    left.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(guard(&wire, &pins).mode, None);
}

fn guard(wire: &Wire, pins: &Pins) -> Guard {
    let guard = wire.inside.run(|| look(pins, "lim0")).unwrap_or_else(|e| panic!("{e}"));
    guard.unwrap_or_else(|e| panic!("{e}"))
}
