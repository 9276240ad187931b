//! Several interfaces, several queues, and interfaces that come and go: one limit for the host.

use std::net::IpAddr;
use std::thread;

use limiter_tests::net::{Mode, on_cpu};
use limiter_tests::process::Daemon;
use limiter_tests::require;
use limiter_tests::require::cpus;
use limiter_tests::wait::wait_for;

use super::edge::{ANNA, Edge, PATIENCE, calm, frame, policy};
use super::ready;

#[test]
fn an_interface_that_goes_and_comes_back_is_guarded_again() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy(20, &calm()));
    assert_eq!(edge.admitted(ANNA, 8), 8);
    edge.outside.ip(&["link del out0"]).unwrap();
    let gone =
        wait_for(PATIENCE, || edge.status()["interfaces"][0]["index"].is_null().then_some(()));
    assert!(gone.is_some());
    edge.link(0);
    let mode = || edge.xdp("edge0").map(|attached| attached.mode);
    assert_eq!(wait_for(PATIENCE, mode), Some(Mode::Native), "{}", edge.home.log());
    assert_eq!(edge.admitted(ANNA, 30), 12, "under the same count");
}

#[test]
fn one_limit_over_all_interfaces() {
    require!(ready());
    let edge = Edge::new();
    edge.link(1);
    edge.home.write("policy.toml", &policy(21, &calm())).unwrap();
    let mut invocation = edge.invocation();
    invocation.interfaces.push("edge1".into());
    let _daemon = Daemon::start(&edge.inside, &edge.home, &invocation).unwrap();
    let (left, right, frame) = (edge.frames(0), edge.frames(1), frame(ANNA));
    for _ in 0..30 {
        left.send(&frame).unwrap();
        right.send(&frame).unwrap();
    }
    assert_eq!(edge.received(), [(IpAddr::V4(ANNA), 21)].into());
    assert_eq!(edge.counts(), [21, 39, 0]);
    let names: Vec<_> =
        [0, 1].map(|place| edge.status()["interfaces"][place]["name"].clone()).into();
    assert_eq!(names, ["edge0", "edge1"]);
}

/// How a source's packets lie on two CPUs, as (CPU, packets) in order; `true`: both at the same time.
type Spread = (&'static str, bool, &'static [(usize, u32)]);

const SPREADS: [Spread; 5] = [
    ("even", true, &[(0, 2_000), (1, 2_000)]),
    ("9:1", true, &[(0, 1_800), (1, 200)]),
    ("all on one", false, &[(1, 2_000)]),
    ("one, then the other", false, &[(0, 600), (1, 1_400)]),
    ("alternating", false, &[(0, 300), (1, 300), (0, 300), (1, 300), (0, 300), (1, 300)]),
];

#[test]
fn a_source_over_two_cpus_gets_exactly_its_limit() {
    require!(ready(), cpus(2));
    let edge = Edge::with_queues(2);
    let _daemon = edge.start(&policy(1_000, &calm()));
    for (host, (name, together, spread)) in SPREADS.into_iter().enumerate() {
        let source = [198, 51, 100, 1 + u8::try_from(host).unwrap()].into();
        let frame = frame(source);
        let socket = edge.frames(0);
        let send = |cpu, count| {
            on_cpu(cpu, || (0..count).for_each(|_| socket.send(&frame).unwrap())).unwrap()
        };
        if together {
            thread::scope(|scope| {
                spread.iter().for_each(|(cpu, count)| drop(scope.spawn(|| send(*cpu, *count))));
            });
        } else {
            spread.iter().for_each(|(cpu, count)| send(*cpu, *count));
        }
        assert_eq!(edge.received(), [(IpAddr::V4(source), 1_000)].into(), "{name}");
    }
    assert_eq!(edge.counts()[0], 5_000);
}
