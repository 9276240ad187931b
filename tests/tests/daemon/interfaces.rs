//! Several interfaces, and interfaces that come and go: one limit for the host.

use std::net::IpAddr;

use limiter_tests::net::Mode;
use limiter_tests::process::Daemon;
use limiter_tests::require;
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
