//! The kit itself: a network it makes carries real packets of both families, and nothing of it stays.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use limiter_tests::net::{End, FrameSocket, Namespace, UdpSink, attached, veth, veth_with_queues};
use limiter_tests::owner::name_for;
use limiter_tests::process::{Daemon, Home, Invocation};
use limiter_tests::require;
use limiter_tests::require::{bpf, root, tool};
use limiter_tests::wait::wait_for;

const PATIENCE: Duration = Duration::from_secs(10);
const QUIET: Duration = Duration::from_millis(50);

fn two_namespaces(queues: u32) -> (Namespace, Namespace) {
    let edge = Namespace::create("kit").unwrap();
    let outside = Namespace::create("kit").unwrap();
    let inner = End {
        namespace: &edge,
        interface: "edge0",
        addresses: &["192.0.2.1/24", "2001:db8::1/64"],
    };
    let outer = End {
        namespace: &outside,
        interface: "out0",
        addresses: &["192.0.2.2/24", "2001:db8::2/64"],
    };
    veth_with_queues(inner, outer, queues).unwrap();
    (edge, outside)
}

fn send_five(from: &Namespace, source: SocketAddr, to: SocketAddr) {
    let socket = from.run(|| UdpSocket::bind(source)).unwrap().unwrap();
    for _ in 0..5 {
        socket.send_to(b"hello", to).unwrap();
    }
}

#[test]
fn packets_of_both_families_arrive_and_are_counted_by_source() {
    require!(root(), tool("ip"));
    let (edge, outside) = two_namespaces(2);
    let v4 = UdpSink::bind(&edge, "192.0.2.1:0".parse().unwrap()).unwrap();
    let v6 = UdpSink::bind(&edge, "[2001:db8::1]:0".parse().unwrap()).unwrap();
    send_five(&outside, "192.0.2.2:0".parse().unwrap(), v4.address().unwrap());
    send_five(&outside, "[2001:db8::2]:0".parse().unwrap(), v6.address().unwrap());
    let source: Ipv4Addr = "192.0.2.2".parse().unwrap();
    assert_eq!(v4.collect(QUIET).unwrap(), [(source.into(), 5)].into());
    let source: Ipv6Addr = "2001:db8::2".parse().unwrap();
    assert_eq!(v6.collect(QUIET).unwrap(), [(source.into(), 5)].into());
}

#[test]
fn a_raw_frame_reaches_the_other_end_with_a_source_nobody_owns() {
    require!(root(), tool("ip"));
    let (edge, outside) = two_namespaces(1);
    edge.ip(&["route add default via 192.0.2.2"]).unwrap();
    let sink = UdpSink::bind(&edge, "192.0.2.1:7000".parse().unwrap()).unwrap();
    let socket = FrameSocket::open(&outside, "out0").unwrap();
    socket.send(&forged_udp()).unwrap();
    let forged: Ipv4Addr = "203.0.113.9".parse().unwrap();
    assert_eq!(sink.collect(QUIET).unwrap(), [(forged.into(), 1)].into());
}

/// To the broadcast MAC, so that nobody has to be asked for theirs. The stack takes it as a
/// broadcast and still hands it to the socket. No UDP checksum.
fn forged_udp() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 0x08, 0x00]);
    let mut header = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 203, 0, 113, 9, 192, 0, 2, 1];
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(header);
    frame.extend([0x30, 0x39, 0x1b, 0x58, 0, 8, 0, 0]);
    frame
}

#[test]
fn an_interface_without_a_program_says_so() {
    require!(root(), tool("ip"));
    let (edge, _outside) = two_namespaces(1);
    assert_eq!(attached(&edge, "edge0").unwrap(), None);
    let unknown = attached(&edge, "nothing0").unwrap_err().to_string();
    assert!(unknown.contains("nothing0"), "{unknown}");
}

#[test]
fn nothing_stays_behind() {
    require!(root(), bpf(), tool("ip"));
    let (edge, outside) = two_namespaces(1);
    let home = Home::create("kit").unwrap();
    let names = [edge.name().to_owned(), outside.name().to_owned()];
    let pins = home.pins();
    assert!(mounts().contains(pins.to_str().unwrap()));
    drop((edge, outside, home));
    assert!(names.iter().all(|name| !Path::new("/run/netns").join(name).exists()));
    assert!(!mounts().contains(pins.to_str().unwrap()));
    assert!(!pins.exists());
}

#[test]
fn what_a_dead_process_left_is_cleared_by_the_next() {
    require!(root(), bpf(), tool("ip"));
    let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
    let name = name_for("kit", owner.id());
    let left = Path::new("/run").join(&name);
    let named = Path::new("/run/netns").join(&name);
    std::fs::create_dir_all(left.join("bpf")).unwrap();
    assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
    let mut sleeper = start_inside(&name);

    let while_it_lives = Namespace::create("kit").unwrap();
    assert!(left.exists() && named.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let after = Namespace::create("kit").unwrap();

    assert!(!sleeper.wait().unwrap().success(), "killed");
    // Another process of this machine may be in the middle of the same sweep.
    assert!(wait_for(PATIENCE, || (!left.exists() && !named.exists()).then_some(())).is_some());
    drop((while_it_lives, after));
}

fn start_inside(namespace: &str) -> Child {
    let sleeper =
        Command::new("ip").args(["netns", "exec", namespace, "sleep", "1000"]).spawn().unwrap();
    let inside = || Command::new("ip").args(["netns", "pids", namespace]).output().unwrap().stdout;
    wait_for(PATIENCE, || (!inside().is_empty()).then_some(())).expect("it enters the namespace");
    sleeper
}

#[test]
fn a_daemon_that_ends_at_once_is_quoted() {
    require!(root(), bpf(), tool("ip"));
    let edge = Namespace::create("kit").unwrap();
    let home = Home::create("kit").unwrap();
    let invocation = Invocation {
        // Says what it was asked, and ends.
        binary: "/bin/echo".into(),
        interfaces: vec!["edge0".into(), "edge1".into()],
        policy: "/policy.toml".into(),
        metrics: None,
        extra: vec!["--generic".into()],
    };
    let error = Daemon::start(&edge, &home, &invocation).unwrap_err().to_string();
    assert!(error.contains("exit status: 0") && error.contains("run --iface"), "{error}");
    let folder = home.socket().parent().unwrap().display().to_string();
    let arguments = format!(
        "run --iface edge0 --iface edge1 --policy /policy.toml --pin-dir {folder}/bpf \
         --socket {folder}/limiter.sock --state-dir {folder}/state --metrics off --generic\n"
    );
    assert_eq!(home.log(), arguments);
}

#[test]
fn a_failed_command_is_quoted_with_what_it_said() {
    require!(root(), tool("ip"));
    let edge = Namespace::create("kit").unwrap();
    let outside = Namespace::create("kit").unwrap();
    let inner = End { namespace: &edge, interface: "a-name-that-is-too-long", addresses: &[] };
    let outer = End { namespace: &outside, interface: "out0", addresses: &[] };
    let error = veth(inner, outer).unwrap_err().to_string();
    assert!(error.contains("a-name-that-is-too-long") && error.contains("failed"), "{error}");
}

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mounts").unwrap()
}
