//! `limiter detach` and `attach`, with and without a daemon: an operator's word holds against all daemons.

use limiter_tests::net::Mode;
use limiter_tests::require;
use limiter_tests::wait::wait_for;
use rustix::mount::{MountFlags, mount_remount};

use super::edge::{ANNA, Edge, PATIENCE, calm, policy};
use super::ready;

/// Since the daemon looks at its interfaces when its heart beats: two beats, the second a whole round
/// after whatever was done before this call.
fn after_a_look(edge: &Edge) {
    for _ in 0..2 {
        let age = || edge.status()["heartbeat_age_s"].as_f64().unwrap();
        let mut last = age();
        let beat = wait_for(PATIENCE, || {
            let (now, before) = (age(), last);
            last = now;
            (now < before).then_some(())
        });
        assert!(beat.is_some(), "no heartbeat");
    }
}

fn problem(edge: &Edge) -> String {
    let interface = edge.status()["interfaces"][0].clone();
    assert_eq!(interface["attached"], "none");
    interface["problem"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn detached_with_the_daemon_dead_it_stays_so_until_attach() {
    require!(ready());
    let edge = Edge::new();
    edge.start(&policy(20, &calm())).kill();
    assert_eq!(edge.admitted(ANNA, 30), 20);
    let alone = edge.refused(&["status"]);
    assert!(alone.ends_with("limits still hold on edge0 (native); bypass off\n"), "{alone}");
    assert_eq!(edge.json(&["detach", "edge0"])["interface"], "edge0");
    assert_eq!(edge.xdp("edge0"), None);
    assert_eq!(edge.admitted(ANNA, 30), 30);
    assert!(edge.refused(&["detach", "edge0"]).starts_with("edge0: not guarded by limiter"));

    let daemon = edge.restart();
    after_a_look(&edge);
    assert_eq!(edge.xdp("edge0"), None, "the daemon keeps away");
    assert!(problem(&edge).contains("`limiter attach edge0` puts it back"));
    assert!(edge.text(&["status"]).starts_with("!! NOT ATTACHED edge0"));
    daemon.kill();

    assert_eq!(edge.json(&["attach", "edge0"])["attached"], "native");
    assert_eq!(edge.xdp("edge0").map(|attached| attached.mode), Some(Mode::Native));
    assert_eq!(edge.admitted(ANNA, 30), 0, "the window's count was kept");
    let _daemon = edge.restart();
    assert_eq!(edge.status()["interfaces"][0]["attached"], "native");
}

#[test]
fn detached_under_a_living_daemon_it_stays_so_until_attach() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy(20, &calm()));
    edge.json(&["detach", "edge0"]);
    after_a_look(&edge);
    assert_eq!(edge.xdp("edge0"), None, "the daemon keeps away");
    assert!(problem(&edge).contains("`limiter attach edge0` puts it back"));
    edge.json(&["attach", "edge0"]);
    assert_eq!(edge.admitted(ANNA, 30), 20);
    let told =
        wait_for(PATIENCE, || edge.status()["interfaces"][0]["problem"].is_null().then_some(()));
    assert!(told.is_some(), "{:#}", edge.status());
}

/// Without it the daemon would attach again within a second, and "detached" be a lie.
#[test]
fn where_no_mark_can_be_left_it_stays_attached() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy(20, &calm()));
    let program = edge.xdp("edge0");
    mount_remount(edge.home.pins(), MountFlags::BIND | MountFlags::RDONLY, "").unwrap();
    let message = edge.refused(&["detach", "edge0"]);
    assert!(
        message.starts_with("edge0: leave the mark that keeps daemons away: Read-only"),
        "{message}"
    );
    assert_eq!(edge.xdp("edge0"), program);
    assert_eq!(edge.admitted(ANNA, 30), 20);
}
