//! The daemon dies, stops and comes back: the program on the interface notices nothing of it.

use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use limiter_tests::net::Mode;
use limiter_tests::process::Daemon;
use limiter_tests::require;

use super::edge::{ANNA, BOB, Edge, calm, policy};
use super::flood::{self, Flood};
use super::ready;

const LIMIT: u64 = 100;
/// At least, besides those that are killed in the middle of their start.
const KILLS: u32 = 6;
const FULL_WINDOWS: u64 = 3;
const DEADLINE: Duration = Duration::from_secs(60);

/// Whether every look so far found the program attached natively, by a link that nobody made anew.
struct Watched<'a> {
    edge: &'a Edge,
    link: u64,
    looks: AtomicU32,
    stop: AtomicBool,
}

/// Also when the test fails in between.
struct StopsWatching<'a>(&'a AtomicBool);

impl Drop for StopsWatching<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a> Watched<'a> {
    fn new(edge: &'a Edge) -> Self {
        let (looks, stop) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { edge, link: link(edge), looks, stop }
    }

    fn look(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let attached = self.edge.xdp("edge0").map(|attached| attached.mode);
            assert_eq!(attached, Some(Mode::Native), "after {:?} looks", self.looks);
            assert_eq!(link(self.edge), self.link, "the link was made anew");
            self.looks.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn link(edge: &Edge) -> u64 {
    std::fs::metadata(edge.home.pins().join("link-edge0")).unwrap().ino()
}

#[test]
fn killed_again_and_again_under_a_flood_it_lets_no_window_have_more() {
    require!(ready());
    let edge = Edge::new();
    let started = Instant::now();
    let daemon = edge.start(&policy(100, "1s"));
    let start = started.elapsed();
    let watched = Watched::new(&edge);
    let offered = thread::scope(|scope| {
        let stop = StopsWatching(&watched.stop);
        let watcher = scope.spawn(|| watched.look());
        let flood = Flood::start(&edge, ANNA);
        kill_repeatedly(&edge, daemon, start);
        let offered = flood.end();
        drop(stop);
        watcher.join().unwrap();
        offered
    });
    assert!(watched.looks.into_inner() > 20);
    no_window_had_more(&edge, &offered);
}

/// At all moments of a window and of a start, with the last daemon running on return.
fn kill_repeatedly(edge: &Edge, mut daemon: Daemon, start: Duration) {
    let begun = Instant::now();
    let (first, mut last) = (flood::now().0, edge.counts());
    let mut kills = 0;
    while kills < KILLS || flood::now().0 <= first + FULL_WINDOWS {
        assert!(begun.elapsed() < DEADLINE, "{kills} kills only");
        daemon.kill();
        let halfway = Daemon::spawn(&edge.inside, &edge.home, &edge.invocation()).unwrap();
        thread::sleep(start * (kills % 8) / 8);
        halfway.kill();
        daemon = edge.restart();
        let counts = edge.counts();
        assert!(counts[0] >= last[0] && counts[1] >= last[1], "{last:?}, then {counts:?}");
        last = counts;
        kills += 1;
    }
    println!("{kills} kills in {:?}, a start takes {start:?}", begun.elapsed());
    // The flood goes on; the next daemon, if any, finds these counts.
    daemon.stop().unwrap();
}

fn no_window_had_more(edge: &Edge, offered: &flood::Offered) {
    let arrived = flood::arrived(edge);
    println!("offered {offered:?}, arrived {arrived:?}");
    for window in offered.full() {
        assert!(offered.by_window[&window] > 2 * LIMIT, "a flood");
        assert_eq!(arrived.get(&window), Some(&LIMIT), "window {window}");
    }
    assert!(
        arrived.iter().all(|(window, count)| *count <= LIMIT || offered.spoiled.contains(window))
    );
    let _daemon = edge.restart();
    let passed: u64 = arrived.values().sum();
    assert_eq!(
        edge.counts(),
        [passed, offered.total() - passed, 0],
        "each packet was judged and counted"
    );
}

#[test]
fn limits_hold_after_a_kill_and_the_restart_refills_nothing() {
    require!(ready());
    without_a_daemon(Daemon::kill);
}

#[test]
fn limits_hold_after_a_clean_stop_and_the_restart_refills_nothing() {
    require!(ready());
    without_a_daemon(|daemon| assert_eq!(daemon.stop().unwrap().code(), Some(0)));
}

fn without_a_daemon(end: impl FnOnce(Daemon)) {
    let edge = Edge::new();
    let daemon = edge.start(&policy(20, &calm()));
    assert_eq!(edge.admitted(ANNA, 8), 8);
    let program = edge.xdp("edge0");
    end(daemon);
    assert_eq!(edge.xdp("edge0"), program, "the same program goes on");
    assert!(edge.refused(&["status"]).contains("no daemon answers on"));
    assert_eq!(edge.admitted(ANNA, 30), 12);
    assert_eq!(edge.admitted(BOB, 30), 20);
    let _daemon = edge.restart();
    assert_eq!(edge.admitted(ANNA, 30), 0);
    assert_eq!(edge.counts(), [40, 58, 0]);
    assert_eq!(edge.status()["policy"]["version"], 1, "the same policy is no new version");
}

/// Killed between `policy.json` and the flip: the new policy was remembered, and is taken up.
#[test]
fn a_policy_that_was_remembered_and_not_yet_in_force_comes_with_the_restart() {
    require!(ready());
    let (edge, window) = (Edge::new(), calm());
    edge.start(&policy(20, &window)).kill();
    assert_eq!(edge.admitted(ANNA, 8), 8);
    let path = edge.home.state().join("policy.json");
    let mut record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["version"] = 2.into();
    record["origin"] = "socket".into();
    record["text"] = policy(25, &window).into();
    std::fs::write(&path, record.to_string()).unwrap();
    let _daemon = edge.restart();
    assert_eq!(edge.status()["policy"]["version"], 2);
    assert_eq!(edge.admitted(ANNA, 30), 17, "the new limit, and the same count");
}

#[test]
fn a_record_that_is_older_than_the_maps_takes_no_version_back() {
    require!(ready());
    let (edge, window) = (Edge::new(), calm());
    let daemon = edge.start(&policy(20, &window));
    let path = edge.home.state().join("policy.json");
    let old = std::fs::read(&path).unwrap();
    for limit in [25, 30] {
        let next = edge.home.write("next.toml", &policy(limit, &window)).unwrap();
        edge.json(&["policy", "apply", &next.display().to_string()]);
    }
    daemon.kill();
    std::fs::write(&path, old).unwrap();
    let _daemon = edge.restart();
    assert_eq!(edge.status()["policy"]["version"], 4, "after 3");
    assert_eq!(edge.admitted(ANNA, 30), 20);
}
