//! What monitoring sees, with real packets behind it.

use std::net::{IpAddr, Ipv4Addr};

use limiter_tests::process::Daemon;
use limiter_tests::require;

use super::edge::{ANNA, Edge, METRICS, calm, frame, policy_with};
use super::{http, ready};

const SPOOFED: u32 = 5_000;

#[test]
fn a_spoofed_flood_adds_no_series_and_no_address() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy_with("source = 2, prefix = 20", &calm()));
    assert_eq!(edge.admitted(ANNA, 3), 2);
    let before = http::metrics(&edge.inside, METRICS);
    let socket = edge.frames(0);
    for host in 0..SPOOFED {
        // 25 of each /24, of which 20 pass.
        let source = Ipv4Addr::from(0x6440_0000 + host / 25 * 256 + host % 25);
        socket.send(&frame(source)).unwrap();
    }
    assert_eq!(edge.received().len(), 4_000);
    let after = http::metrics(&edge.inside, METRICS);
    assert_eq!(after.series(), before.series());
    for (name, labels) in after.series() {
        for (label, value) in labels {
            assert!(!mentions_an_address(&value), "{name}{{{label}={value}}}");
        }
    }
    let rule = |verdict, level| {
        let labels = [("rule", "udp"), ("verdict", verdict), ("level", level)];
        after.value("limiter_rule_packets_total", &labels)
    };
    assert_eq!(
        (rule("passed", ""), rule("refused", "prefix"), rule("refused", "source")),
        (4_002.0, 1_000.0, 1.0)
    );
    assert_eq!(after.value("limiter_frames_total", &[("exit", "admitted")]), 4_002.0);
    assert!(after.value("limiter_table_live_slots", &[]) > 4_000.0);
}

#[test]
fn a_table_that_is_too_small_is_seen() {
    require!(ready());
    let edge = Edge::new();
    edge.home.write("policy.toml", &policy_with("source = 1, total = 4_000", &calm())).unwrap();
    let mut invocation = edge.invocation();
    invocation.extra = vec!["--table-buckets".into(), "16".into()];
    let _daemon = Daemon::start(&edge.inside, &edge.home, &invocation).unwrap();
    let count = |name| {
        let labels = [("rule", "udp"), ("level", "source")];
        http::metrics(&edge.inside, METRICS).value(name, &labels)
    };
    let fill = || {
        let metrics = http::metrics(&edge.inside, METRICS);
        ["limiter_table_live_slots", "limiter_table_slots"].map(|name| metrics.value(name, &[]))
    };
    let socket = edge.frames(0);
    let send = |host: u32, times| {
        let frame = frame(Ipv4Addr::from(0x6440_0000 + host * 263));
        (0..times).for_each(|_| socket.send(&frame).unwrap());
    };
    assert_eq!((fill(), count("limiter_rule_displaced_total")), ([0.0, 128.0], 0.0));
    (0..1_000).for_each(|host| send(host, 1));
    edge.received();
    assert!(fill()[0] > 120.0, "{:?}", fill());
    assert!((872.0..=900.0).contains(&count("limiter_rule_displaced_total")));
    assert_eq!(count("limiter_rule_crowded_total"), 0.0, "one of little use always gives way");
    // Each is refused its second packet, and then keeps its place.
    (1_000..2_000).for_each(|host| send(host, 2));
    edge.received();
    assert!(count("limiter_rule_crowded_total") > 800.0);
}

fn mentions_an_address(text: &str) -> bool {
    let words = text.split(|c: char| !(c.is_ascii_hexdigit() || c == '.' || c == ':'));
    words.into_iter().any(|word| word.parse::<IpAddr>().is_ok())
}

#[test]
fn health_and_readiness_tell_a_dead_daemon_from_an_unguarded_interface() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy_with("source = 2", &calm()));
    let get = |path| http::get(&edge.inside, METRICS, path);
    assert_eq!(get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(get("/readyz"), (200, "ready\n".to_owned()));
    edge.json(&["detach", "edge0"]);
    let (status, why) = get("/readyz");
    assert!(status == 503 && why.contains("edge0: not attached"), "{status} {why}");
    assert_eq!(get("/healthz").0, 200);
    edge.json(&["attach", "edge0"]);
    assert_eq!(get("/readyz").0, 200);
    assert_eq!(get("/nothing").0, 404);
}
