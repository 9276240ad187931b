//! Several interfaces, and interfaces that come and go: one limit for the host.

use std::net::IpAddr;

use limiter_tests::net::{FrameSocket, Mode};
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

/// A daemon that guards two links.
fn two_links(edge: &Edge, limit: u32) -> Daemon {
    edge.link(1);
    edge.home.write("policy.toml", &policy(limit, &calm())).unwrap();
    let mut invocation = edge.invocation();
    invocation.interfaces.push("edge1".into());
    Daemon::start(&edge.inside, &edge.home, &invocation).unwrap()
}

#[test]
fn one_limit_over_all_interfaces() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = two_links(&edge, 21);
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

#[test]
fn links_share_one_limit_also_while_one_is_away_and_when_it_is_back() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = two_links(&edge, 40);
    let (left, frame) = (edge.frames(0), frame(ANNA));
    let send = |socket: &FrameSocket, count| (0..count).for_each(|_| socket.send(&frame).unwrap());
    let received = || edge.received().get(&IpAddr::V4(ANNA)).copied().unwrap_or(0);
    let right = edge.frames(1);
    (0..10).for_each(|_| [&left, &right].into_iter().for_each(|socket| send(socket, 1)));
    assert_eq!(received(), 20, "half on each");

    edge.outside.ip(&["link del out1"]).unwrap();
    let gone =
        wait_for(PATIENCE, || edge.status()["interfaces"][1]["index"].is_null().then_some(()));
    assert!(gone.is_some());
    send(&left, 10);
    assert_eq!(received(), 10, "the other link goes on under the same count");

    edge.link(1);
    let mode = || edge.xdp("edge1").map(|attached| attached.mode);
    assert_eq!(wait_for(PATIENCE, mode), Some(Mode::Native), "{}", edge.home.log());
    let right = edge.frames(1);
    (0..20).for_each(|_| [&right, &left].into_iter().for_each(|socket| send(socket, 1)));
    assert_eq!(received(), 10, "what is left, for both");
    assert_eq!(edge.counts(), [40, 30, 0]);
}
