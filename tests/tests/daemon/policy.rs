//! Policies change while packets come: whole or not at all, and never is a count lost that a rule keeps.

use limiter_tests::process::Daemon;
use limiter_tests::require;
use limiter_tests::wait::wait_for;
use rustix::process::Signal;

use super::edge::{ANNA, BOB, Edge, PATIENCE, calm, policy, versioned};
use super::flood::{self, Flood};
use super::ready;

fn write(edge: &Edge, policy: &str) {
    edge.home.write("policy.toml", policy).unwrap();
}

fn until(edge: &Edge, what: &str, holds: impl Fn(&serde_json::Value) -> bool) {
    let held = wait_for(PATIENCE, || holds(&edge.status()["policy"]).then_some(()));
    assert!(held.is_some(), "{what}: {:#}\n{}", edge.status(), edge.home.log());
}

fn until_version(edge: &Edge, version: u64) {
    until(edge, "a new version", |policy| policy["version"] == version);
    assert!(edge.status()["policy"]["last_refusal"].is_null());
}

#[test]
fn a_bad_file_is_refused_whole_and_the_next_good_one_taken() {
    require!(ready());
    let (edge, window) = (Edge::new(), calm());
    let _daemon = edge.start(&policy(20, &window));
    assert_eq!(edge.admitted(ANNA, 8), 8);
    // The limit would be good; the typo refuses it with the rest.
    write(&edge, &policy(5, &window).replace("window", "windwo"));
    until(&edge, "a refusal", |policy| policy["last_refusal"].is_string());
    let refusal = edge.status()["policy"]["last_refusal"].as_str().unwrap().to_owned();
    assert!(refusal.contains("policy.toml") && refusal.contains("windwo"), "{refusal}");
    assert!(edge.text(&["status"]).starts_with("!! LAST POLICY CHANGE REFUSED, policy 1 stays: "));
    assert_eq!(edge.admitted(ANNA, 30), 12, "the old limit, and its count");
    write(&edge, &policy(25, &window));
    until_version(&edge, 2);
    assert_eq!(edge.admitted(ANNA, 30), 5, "the new limit, and the same count");
}

#[test]
fn sighup_reads_the_file_at_once() {
    require!(ready());
    let (edge, window) = (Edge::new(), calm());
    let daemon = edge.start(&policy(20, &window));
    let hang_up = |daemon: &Daemon| daemon.signal(Signal::HUP).unwrap();
    write(&edge, "schema = 2\n");
    hang_up(&daemon);
    until(&edge, "a refusal", |policy| policy["last_refusal"].is_string());
    assert_eq!(edge.admitted(ANNA, 30), 20);
    write(&edge, &policy(10, &window));
    hang_up(&daemon);
    until_version(&edge, 2);
    assert_eq!(edge.admitted(ANNA, 30), 0);
    assert_eq!(edge.admitted(BOB, 30), 10);
}

#[test]
fn policy_apply_takes_a_good_one_and_refuses_a_bad_or_older_one() {
    require!(ready());
    let (edge, window) = (Edge::new(), calm());
    let daemon = edge.start(&versioned(7, &policy(20, &window)));
    let apply = |name: &str, text: &str| edge.home.write(name, text).unwrap().display().to_string();
    assert_eq!(edge.admitted(ANNA, 8), 8);

    let next = apply("next.toml", &versioned(9, &policy(25, &window)));
    assert_eq!(edge.json(&["policy", "apply", &next])["version"], 9);
    assert_eq!(edge.admitted(ANNA, 30), 17);

    let replayed = apply("replayed.toml", &versioned(8, &policy(1_000, &window)));
    let message = edge.refused(&["policy", "apply", &replayed]);
    assert!(message.contains("it says version 8, but version 9 is known here"), "{message}");
    assert!(message.contains("give it version 10"), "{message}");
    let bad = apply("bad.toml", &versioned(10, "schema = 1\nrules = 3\n"));
    assert!(edge.refused(&["policy", "apply", &bad]).contains("rules"));
    assert!(edge.status()["policy"]["last_refusal"].is_string());

    assert_eq!(edge.admitted(ANNA, 30), 0, "neither took effect");
    assert_eq!(edge.admitted(BOB, 30), 25);
    daemon.kill();
    let _daemon = edge.restart();
    assert_eq!(edge.status()["policy"]["version"], 9, "the file, which didn't change, is older");
    assert_eq!(edge.admitted(BOB, 30), 0);
    let shown = edge.json(&["policy", "show"]);
    assert_eq!(shown["text"], versioned(9, &policy(25, &window)));
}

#[test]
fn a_replayed_file_does_not_start_a_daemon_and_the_limits_hold() {
    require!(ready());
    let (edge, window) = (Edge::new(), calm());
    let daemon = edge.start(&versioned(7, &policy(20, &window)));
    let program = edge.xdp("edge0");
    daemon.kill();
    write(&edge, &versioned(6, &policy(1_000, &window)));
    let refused =
        Daemon::start(&edge.inside, &edge.home, &edge.invocation()).unwrap_err().to_string();
    assert!(refused.contains("it says version 6, but version 7 is known here"), "{refused}");
    assert_eq!(edge.xdp("edge0"), program);
    assert_eq!(edge.admitted(ANNA, 30), 20);
}

#[test]
fn the_same_file_again_keeps_version_and_counts() {
    require!(ready());
    let (edge, text) = (Edge::new(), policy(20, &calm()));
    let daemon = edge.start(&text);
    assert_eq!(edge.admitted(ANNA, 8), 8);
    let path = edge.policy_path().display().to_string();
    assert_eq!(edge.json(&["policy", "apply", &path])["version"], 1);
    daemon.signal(Signal::HUP).unwrap();
    until_version(&edge, 1);
    let explained = edge.json(&["explain", &ANNA.to_string()]);
    assert_eq!(explained["rules"][0]["levels"][0]["used"], 8);
    assert_eq!(edge.admitted(ANNA, 30), 12);
}

#[test]
fn policies_change_under_a_flood_and_no_window_has_more() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy(100, "1s"));
    let next = edge.home.write("next.toml", "").unwrap().display().to_string();
    let flood = Flood::start(&edge, ANNA);
    let first = flood::now().0;
    let mut changes = 0;
    while flood::now().0 <= first + 2 {
        edge.home.write("next.toml", &policy(99 + changes % 2, "1s")).unwrap();
        edge.json(&["policy", "apply", &next]);
        changes += 1;
    }
    let (offered, arrived) = (flood.end(), flood::arrived(&edge));
    println!("{changes} changes, offered {offered:?}, arrived {arrived:?}");
    assert!(changes > 10);
    for window in offered.full() {
        assert!([99, 100].contains(&arrived[&window]), "{window}: {arrived:?}");
    }
    let passed: u64 = arrived.values().sum();
    assert_eq!(edge.counts(), [passed, offered.total() - passed, 0], "none met a gap between two");
}
