//! A million living sources: what an operator's commands take then.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use limiter_tests::net::on_cpu;
use limiter_tests::process::{Daemon, binary};
use limiter_tests::require;
use limiter_tests::require::{Missing, cpus};

use super::edge::{ANNA, Edge, calm, frame, policy};
use super::ready;

const SOURCES: u32 = 1_000_000;
/// From a frame's beginning to its IPv4 source.
const SOURCE: usize = 26;
/// What `top` may take, process start and printing included: the median of this many.
const MOST: Duration = Duration::from_millis(100);
const LOOKS: usize = 5;

#[test]
fn top_over_a_million_sources_takes_a_tenth_of_a_second_at_most() {
    require!(ready(), cpus(2), shipped());
    let edge = Edge::with_queues(2);
    // Of 3 packets, so that with its second a source is known by its address.
    edge.home.write("policy.toml", &policy(3, &calm())).unwrap();
    let mut invocation = edge.invocation();
    invocation.extra = vec!["--table-sources".into(), SOURCES.to_string()];
    let _daemon = Daemon::start(&edge.inside, &edge.home, &invocation).unwrap();
    fill(&edge);
    let slots = edge.status()["table"]["slots"].as_u64().unwrap();
    assert_eq!(slots, 1 << 22, "for a million sources, each with one key: a quarter full");
    let mut live = 0;
    let mut looks: Vec<Duration> = (0..LOOKS)
        .map(|_| {
            let begin = Instant::now();
            let top = edge.json(&["top", "--once"]);
            let took = begin.elapsed();
            live = top["live"].as_u64().unwrap();
            assert_eq!(top["rows"].as_array().unwrap().len(), 20);
            assert_eq!(top["rows"][0]["key"], ANNA.to_string());
            took
        })
        .collect();
    looks.sort_unstable();
    println!("{live} keys live; top took {looks:?}");
    assert!(live > u64::from(SOURCES) * 99 / 100, "{live}");
    assert!(looks[LOOKS / 2] <= MOST, "{looks:?}");
}

/// Times of a debug build say nothing.
fn shipped() -> Result<(), Missing> {
    let path = binary().map_err(|error| error.to_string())?;
    if path.components().any(|part| part.as_os_str() == "debug") {
        return Err(format!("{} is a debug build: name another in LIMITER_BIN", path.display()));
    }
    Ok(())
}

/// Two packets of each source, a few more of one.
fn fill(edge: &Edge) {
    let socket = edge.frames(0);
    let send = |range: std::ops::Range<u32>| {
        // The checksums stay ANNA's, so the stack behind the program drops these: all the quicker.
        let mut any = frame(ANNA);
        for n in range {
            let source = Ipv4Addr::from(0x0b00_0000_u32.wrapping_add(n.wrapping_mul(977)));
            any[SOURCE..SOURCE + 4].copy_from_slice(&source.octets());
            socket.send(&any).unwrap();
            socket.send(&any).unwrap();
        }
    };
    thread::scope(|scope| {
        for cpu in 0..2 {
            let half = SOURCES / 2;
            scope.spawn(move || {
                on_cpu(cpu, || send(cpu as u32 * half..(cpu as u32 + 1) * half)).unwrap()
            });
        }
    });
    let frame = frame(ANNA);
    (0..50).for_each(|_| socket.send(&frame).unwrap());
}
