//! What the command line says about traffic that really came.

use limiter_tests::require;
use serde_json::{Value, json};

use super::edge::{ANNA, BOB, Edge, calm, policy_with};
use super::ready;

/// In BOB's /24.
const CAROL: std::net::Ipv4Addr = std::net::Ipv4Addr::new(203, 0, 113, 200);

#[test]
fn top_and_explain_say_what_was_sent() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy_with("source = 20, prefix = 32", &calm()));
    let admitted =
        [(ANNA, 8), (BOB, 30), (CAROL, 30)].map(|(who, offered)| edge.admitted(who, offered));
    assert_eq!(admitted, [8, 20, 12]);

    let row = |row: &Value| json!([row["key"], row["used"], row["limit"], row["refused"]]);
    let top = |by| {
        let top = edge.json(&["top", "--once", "--by", by]);
        top["rows"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let sources = [
        json!(["203.0.113.9", 20, 20, true]),
        json!(["203.0.113.200", 12, 20, false]),
        json!(["198.51.100.66", 8, 20, false]),
    ];
    assert_eq!(top("source"), sources);
    let prefixes =
        [json!(["203.0.113.0/24", 32, 32, true]), json!(["198.51.100.0/24", 8, 32, false])];
    assert_eq!(top("prefix"), prefixes);
    assert_eq!(edge.json(&["top", "--once"])["live"], 5);

    let explain = |who: std::net::Ipv4Addr| {
        let rule = edge.json(&["explain", &who.to_string()])["rules"][0].clone();
        let levels = rule["levels"].as_array().unwrap();
        let used: Vec<_> =
            levels.iter().map(|level| json!([level["level"], level["used"]])).collect();
        (used, rule["next"].as_str().unwrap().to_owned())
    };
    let anna = (vec![json!(["prefix", 8]), json!(["source", 8])], "pass".to_owned());
    assert_eq!(explain(ANNA), anna);
    let bob = (vec![json!(["prefix", 32]), json!(["source", 20])], "refuse (prefix)".to_owned());
    assert_eq!(explain(BOB), bob);
}

#[test]
fn every_verb_has_its_json_and_its_exit_codes() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy_with("source = 20", &calm()));
    let path = edge.policy_path().display().to_string();
    let verbs: [&[&str]; 12] = [
        &["check", &path],
        &["status"],
        &["explain", "2001:db8::1"],
        &["top", "--once"],
        &["policy", "show"],
        &["policy", "apply", &path],
        &["mode", "udp", "shadow"],
        &["mode", "udp", "file"],
        &["bypass"],
        &["bypass", "off"],
        &["detach", "edge0"],
        &["attach", "edge0"],
    ];
    for verb in verbs {
        assert!(edge.json(verb).is_object(), "{verb:?}");
    }
    let failing: [&[&str]; 5] = [
        &["check", "/nothing"],
        &["policy", "apply", "/nothing"],
        &["mode", "no-such-rule", "shadow"],
        &["detach", "wan0"],
        &["attach", "wan0"],
    ];
    for verb in failing {
        assert_eq!(edge.refused(verb).lines().count(), 1, "{verb:?}");
    }
    for usage in
        [&["explain", "anna"][..], &["bypass", "perhaps"], &["nothing"], &["run", "--iface"]]
    {
        let said = edge.limiter(usage);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
    }
}
