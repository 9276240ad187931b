//! The number of queues and CPUs changes nothing (promise A9), with real packets on a link of two queues
//! and the real clock. Five sources send at the same time, each spread over the CPUs in another way; only
//! windows that all of them filled are judged.

use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::Duration;

use limiter_tests::net::{FrameSocket, on_cpu, queue_packets};
use limiter_tests::require;
use limiter_tests::require::{cpus, tool};
use limiter_tests::wait::wait_for;

use super::edge::{Edge, PATIENCE, frame, policy};
use super::flood::{WINDOW_MS, now};
use super::ready;

const LIMIT: u64 = 1_000;
const LEAST: u64 = LIMIT * 98 / 100;
/// Of each source in each window.
const OFFERED: u64 = 1_200;
/// Pieces of a window's packets, the time between their beginnings, and what is left free at either end.
const ROUNDS: u64 = 8;
const ROUND_MS: u64 = 65;
const EDGE_MS: u64 = 120;
/// Windows to judge, and to try.
const JUDGED: usize = 3;
const TRIED: usize = 40;

/// Which CPU takes the n-th packet of a window, the window's number being told; `true`: both CPUs send at
/// the same time, each its own.
type Spread = (&'static str, bool, fn(u64, u64) -> usize);

const SPREADS: [Spread; 5] = [
    ("even", true, |n, _| cpu(n % 2 == 0)),
    ("9:1", true, |n, _| cpu(n % 10 == 0)),
    ("alternating", false, |n, _| cpu(n % 2 == 0)),
    ("all on one", false, |_, _| 1),
    ("one, then the other", false, |n, window| cpu(n >= window * 337 % OFFERED)),
];

fn cpu(second: bool) -> usize {
    usize::from(second)
}

#[test]
fn a_source_gets_its_limit_in_each_window_however_two_queues_share_it() {
    require!(ready(), cpus(2), tool("ethtool"));
    let edge = Edge::with_queues(2);
    let _daemon = edge.start(&policy(LIMIT as u32, "1s"));
    let socket = edge.frames(0);
    let (mut judged, mut sent) = (0, [0; 2]);
    for _ in 0..TRIED {
        let window = fill_a_window(&socket, &mut sent);
        let received = edge.received();
        let Some(window) = window else { continue };
        for (place, (name, ..)) in SPREADS.iter().enumerate() {
            let passed = received.get(&IpAddr::V4(source(place))).copied().unwrap_or(0);
            println!("window {window}, {name}: {passed}");
            assert!((LEAST..=LIMIT).contains(&passed), "window {window}, {name}: {passed}");
        }
        judged += 1;
        if judged == JUDGED {
            break;
        }
    }
    assert_eq!(judged, JUDGED, "the machine is too slow to fill a window");
    // Else nothing was shown: each CPU's packets really came by a queue of their own.
    assert_eq!(queue_packets(&edge.inside, "edge0").unwrap(), sent);
}

fn source(place: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, 1 + place as u8)
}

/// Sends all that is for one window, and counts it by CPU; `None` if it ended before that was done.
fn fill_a_window(socket: &FrameSocket, sent: &mut [u64; 2]) -> Option<u64> {
    let last = now().0;
    let begun = wait_for(PATIENCE, || Some(now().0).filter(|window| *window > last));
    let window = begun.expect("time goes by");
    for round in 0..ROUNDS {
        wait_until(window, EDGE_MS + round * ROUND_MS);
        for (place, (_, at_once, cpu_of)) in SPREADS.iter().enumerate() {
            let packets = round * OFFERED / ROUNDS..(round + 1) * OFFERED / ROUNDS;
            let turns: Vec<usize> = packets.map(|n| cpu_of(n, window)).collect();
            turns.iter().for_each(|cpu| sent[*cpu] += 1);
            send(socket, &frame(source(place)), &turns, *at_once);
        }
    }
    let (end, phase) = now();
    (end == window && phase < WINDOW_MS - EDGE_MS).then_some(window)
}

/// Returns when so much of the window is over.
fn wait_until(window: u64, phase_ms: u64) {
    let (present, phase) = now();
    if present == window {
        thread::sleep(Duration::from_millis(phase_ms.saturating_sub(phase)));
    }
}

fn send(socket: &FrameSocket, frame: &[u8], turns: &[usize], at_once: bool) {
    let run = |cpu, count| {
        on_cpu(cpu, || (0..count).for_each(|_| socket.send(frame).unwrap())).unwrap();
    };
    if at_once {
        let count = |which| turns.iter().filter(|cpu| **cpu == which).count();
        thread::scope(|scope| {
            for cpu in [0, 1] {
                scope.spawn(move || run(cpu, count(cpu)));
            }
        });
    } else {
        for same in turns.chunk_by(|one, next| one == next) {
            run(same[0], same.len());
        }
    }
}
