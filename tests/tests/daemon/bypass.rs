//! The ways back in an incident, fastest first: none needs the daemon but the mode of a rule, each is
//! counted, and each holds until it is taken back.

use std::time::{Duration, Instant};

use limiter_tests::require;
use serde_json::Value;

use super::edge::{ANNA, Edge, METRICS, calm, policy};
use super::{http, ready};

/// What an operator was promised.
const FAST: Duration = Duration::from_secs(1);

fn bypass(edge: &Edge, mode: &str) {
    let begun = Instant::now();
    assert_eq!(edge.json(&["bypass", mode])["bypass"], mode);
    assert!(begun.elapsed() < FAST, "{:?}", begun.elapsed());
}

fn exits(edge: &Edge, exit: &str) -> u64 {
    let metrics = http::metrics(&edge.inside, METRICS);
    metrics.value("limiter_frames_total", &[("exit", exit)]) as u64
}

#[test]
fn bypass_works_with_the_daemon_dead_and_survives_its_restart() {
    require!(ready());
    let edge = Edge::new();
    edge.start(&policy(20, &calm())).kill();
    assert_eq!(edge.admitted(ANNA, 30), 20);

    bypass(&edge, "pass");
    assert_eq!(edge.admitted(ANNA, 30), 30);
    let daemon = edge.restart();
    assert_eq!(edge.status()["bypass"], "pass");
    assert!(edge.text(&["status"]).starts_with("!! BYPASS pass"));
    assert_eq!(edge.admitted(ANNA, 5), 5);
    assert_eq!(exits(&edge, "bypass-pass"), 35);
    daemon.kill();

    bypass(&edge, "shadow");
    assert_eq!(edge.admitted(ANNA, 30), 30);
    let daemon = edge.restart();
    assert_eq!(edge.status()["bypass"], "shadow");
    assert_eq!(exits(&edge, "bypass-shadow"), 30);
    daemon.kill();

    bypass(&edge, "off");
    assert_eq!(edge.admitted(ANNA, 30), 0, "the window's count was kept");
    let _daemon = edge.restart();
    assert_eq!(exits(&edge, "refused"), 40);
    assert_eq!(edge.counts(), [20, 40, 30], "what the bypass let pass was not refused");
    assert_eq!(edge.text(&["bypass"]), "bypass off: the policy holds\n");
}

#[test]
fn pins_removed_under_the_daemon_fail_no_answer() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy(20, &calm()));
    bypass(&edge, "shadow");
    for entry in std::fs::read_dir(edge.home.pins()).unwrap().flatten() {
        let path = entry.path();
        let _ =
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    let status = edge.status();
    assert_eq!(status["bypass"], "shadow", "the map is there, without its pin");
    assert!(status["pins_problem"].as_str().unwrap().ends_with("; restart limiter"), "{status:#}");
    assert_eq!(edge.json(&["explain", "192.0.2.1"])["bypass"], "shadow");
    let metrics = http::metrics(&edge.inside, METRICS);
    assert_eq!(metrics.value("limiter_bypass", &[("mode", "shadow")]) as u64, 1);
}

#[test]
fn a_rule_in_shadow_lets_pass_what_it_counts_and_stays_so() {
    require!(ready());
    let edge = Edge::new();
    let daemon = edge.start(&policy(20, &calm()));
    edge.json(&["mode", "udp", "shadow", "--owner", "anna", "--reason", "too tight"]);
    assert_eq!(edge.admitted(ANNA, 30), 30);
    assert_eq!(edge.counts(), [20, 0, 10]);
    daemon.kill();
    let _daemon = edge.restart();
    let rule: Value = edge.status()["policy"]["rules"][0].clone();
    assert_eq!(
        (&rule["mode"], &rule["mode_override"]["owner"]),
        (&"shadow".into(), &"anna".into())
    );
    assert_eq!(edge.admitted(ANNA, 5), 5);
    edge.json(&["mode", "udp", "file"]);
    assert_eq!(edge.admitted(ANNA, 5), 0);
    assert_eq!(edge.counts(), [20, 5, 15]);
}
