//! Jumbo frames, which lie in several buffers (MTU 9000), count in full under limits over bytes.

use std::net::{IpAddr, Ipv4Addr};
use std::thread;

use limiter_tests::frame::Frame;
use limiter_tests::net::{Mode, on_cpu, queue_packets};
use limiter_tests::require;
use limiter_tests::require::{cpus, tool};

use super::edge::{ANNA, BOB, Edge, HOST, MAC, METRICS, PORT, calm, policy_with};
use super::{http, ready};

/// A whole packet of MTU 9000 behind its Ethernet header.
const FULL: usize = 9_014;
const HEADERS: usize = 42;

/// A link for such frames, and a daemon that limits each source to so many bytes.
fn jumbo_edge(limit: &str) -> Edge {
    let edge = Edge::with_queues(2);
    edge.inside.ip(&["link set dev edge0 mtu 9000"]).unwrap();
    edge.outside.ip(&["link set dev out0 mtu 9000"]).unwrap();
    let policy = policy_with(&format!("source = {limit}"), &calm());
    edge.home.write("policy.toml", &policy.replace("window", "unit = \"bytes\"\nwindow")).unwrap();
    edge
}

fn of_length(source: Ipv4Addr, length: usize) -> Vec<u8> {
    let frame = Frame::new().ethernet(MAC, [2, 0, 0, 0, 0, 9]).ipv4(source).destination(HOST);
    let frame = frame.udp(PORT).payload(length - HEADERS).build();
    assert_eq!(frame.len(), length);
    frame
}

/// Sends frames from one CPU and counts those of this source that arrived.
fn admitted(edge: &Edge, source: Ipv4Addr, length: usize, offered: usize) -> u64 {
    let (socket, frame) = (edge.frames(0), of_length(source, length));
    on_cpu(0, || (0..offered).for_each(|_| socket.send(&frame).unwrap())).unwrap();
    edge.received().get(&IpAddr::V4(source)).copied().unwrap_or(0)
}

/// Of all frames that left the program this way.
fn bytes(edge: &Edge, exit: &str) -> u64 {
    let metrics = http::metrics(&edge.inside, METRICS);
    metrics.value("limiter_frame_bytes_total", &[("exit", exit)]) as u64
}

#[test]
fn a_byte_limit_is_met_to_the_byte_by_frames_in_several_buffers() {
    require!(ready());
    let edge = jumbo_edge("50_000");
    let _daemon = edge.restart();
    assert_eq!(edge.xdp("edge0").map(|attached| attached.mode), Some(Mode::Native));
    assert_eq!(admitted(&edge, ANNA, FULL, 8), 5, "45,070 of 50,000 bytes");
    assert_eq!(admitted(&edge, ANNA, 4_931, 1), 0, "4,930 are left");
    assert_eq!(admitted(&edge, ANNA, 4_930, 2), 1);
    assert_eq!(admitted(&edge, ANNA, HEADERS, 1), 0, "none is left");
    // Another source, with frames of one buffer and of several.
    assert_eq!(admitted(&edge, BOB, 1_514, 10), 10);
    assert_eq!(admitted(&edge, BOB, FULL, 5), 3, "15,140 and 27,042 of 50,000 bytes");
    assert_eq!(bytes(&edge, "admitted"), 5 * 9_014 + 4_930 + 10 * 1_514 + 3 * 9_014);
    assert_eq!(bytes(&edge, "refused"), 3 * 9_014 + 4_931 + 4_930 + 42 + 2 * 9_014);
}

#[test]
fn two_queues_of_jumbo_frames_share_a_byte_limit() {
    require!(ready(), cpus(2), tool("ethtool"));
    // Nine megabytes are counted in quanta of 4 bytes: a frame as 9,016.
    const MOST: u64 = 9_000_000 / 9_016;
    const EACH: u64 = 600;
    let edge = jumbo_edge("\"9MB\"");
    let _daemon = edge.restart();
    let (socket, frame) = (edge.frames(0), of_length(ANNA, FULL));
    let send = |cpu| on_cpu(cpu, || (0..EACH).for_each(|_| socket.send(&frame).unwrap())).unwrap();
    thread::scope(|scope| [0, 1].map(|cpu| scope.spawn(move || send(cpu))).map(drop));
    let passed = edge.received().get(&IpAddr::V4(ANNA)).copied().unwrap_or(0);
    assert!((MOST * 98 / 100..=MOST).contains(&passed), "{passed} of {MOST}");
    assert_eq!(bytes(&edge, "admitted"), passed * 9_014);
    assert_eq!(queue_packets(&edge.inside, "edge0").unwrap(), [EACH; 2]);
}
