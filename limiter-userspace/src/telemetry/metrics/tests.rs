use limiter_common::counters::{Count, RuleCount};
use limiter_common::key::Level;
use limiter_common::packet::Fault;
use limiter_common::verdict::Exit;

use super::*;
use crate::telemetry::counts::RuleCounts;

fn observation() -> Observation {
    let count = |packets| Count { packets, bytes: packets * 100 };
    let rule = |name: &str| RuleCounts {
        name: name.to_owned(),
        counts: vec![
            (RuleCount::Passed, count(5)),
            (RuleCount::Refused(Level::Source), count(6)),
            (RuleCount::WouldRefuse(Level::Prefix), count(7)),
            (RuleCount::Crowded(Level::Total), count(8)),
            (RuleCount::Displaced(Level::Source), count(9)),
            (RuleCount::Contended, count(10)),
        ],
    };
    Observation {
        counts: Counts {
            exits: vec![(Exit::Admitted, count(1)), (Exit::Refused, count(2))],
            faults: vec![(Fault::CutOff, count(3))],
            rules: vec![rule("syn")],
        },
        gauges: Gauges {
            program_version: "0.1.0".to_owned(),
            uptime_s: 60,
            policy_version: 7,
            policy_generation: 3,
            policy_applied_unix_s: 1_700_000_000,
            policy_change_refused: true,
            bypass: "shadow".to_owned(),
            interfaces: vec![("eth0".into(), "native".into()), ("eth1".into(), "none".into())],
            rules: vec![("syn".into(), "enforce".into())],
            table_slots: 1 << 20,
            table_live: 12,
            table_bytes: 24 << 20,
            heartbeat_age_s: 0.25,
        },
    }
}

#[test]
fn writes_each_metric_as_documented() {
    let expected = r#"# HELP limiter_frames Frames by how they left the program; each has one exit
# TYPE limiter_frames counter
limiter_frames_total{exit="admitted"} 1
limiter_frames_total{exit="refused"} 2
# HELP limiter_frame_bytes Bytes of frames by how they left the program, Ethernet header included
# TYPE limiter_frame_bytes counter
# UNIT limiter_frame_bytes bytes
limiter_frame_bytes_total{exit="admitted"} 100
limiter_frame_bytes_total{exit="refused"} 200
# HELP limiter_unreadable_frames Frames whose headers can't be read, by fault
# TYPE limiter_unreadable_frames counter
limiter_unreadable_frames_total{fault="cut-off"} 3
# HELP limiter_rule_packets Packets judged by a rule; the level is the one that had no room
# TYPE limiter_rule_packets counter
limiter_rule_packets_total{rule="syn",verdict="passed",level=""} 5
limiter_rule_packets_total{rule="syn",verdict="refused",level="source"} 6
limiter_rule_packets_total{rule="syn",verdict="would-refuse",level="prefix"} 7
limiter_rule_packets_total{rule="syn",verdict="contended",level=""} 10
# HELP limiter_rule_bytes Bytes of packets judged by a rule
# TYPE limiter_rule_bytes counter
# UNIT limiter_rule_bytes bytes
limiter_rule_bytes_total{rule="syn",verdict="passed",level=""} 500
limiter_rule_bytes_total{rule="syn",verdict="refused",level="source"} 600
limiter_rule_bytes_total{rule="syn",verdict="would-refuse",level="prefix"} 700
limiter_rule_bytes_total{rule="syn",verdict="contended",level=""} 1000
# HELP limiter_rule_crowded Packets not judged at a level, its bucket full of keys at limits
# TYPE limiter_rule_crowded counter
limiter_rule_crowded_total{rule="syn",level="total"} 8
# HELP limiter_rule_displaced Keys that lost their count at a level for a new key
# TYPE limiter_rule_displaced counter
limiter_rule_displaced_total{rule="syn",level="source"} 9
# HELP limiter_policy_version Version of the policy in force; 0 for none
# TYPE limiter_policy_version gauge
limiter_policy_version 7.0
# HELP limiter_policy_generation Policy changes since the maps were made
# TYPE limiter_policy_generation gauge
limiter_policy_generation 3.0
# HELP limiter_policy_applied_timestamp_seconds Unix time at which the policy took effect
# TYPE limiter_policy_applied_timestamp_seconds gauge
# UNIT limiter_policy_applied_timestamp_seconds seconds
limiter_policy_applied_timestamp_seconds 1700000000.0
# HELP limiter_policy_change_refused 1 if the last change of the policy was refused
# TYPE limiter_policy_change_refused gauge
limiter_policy_change_refused 1.0
# HELP limiter_rule_mode 1 for the mode that each rule is in
# TYPE limiter_rule_mode gauge
limiter_rule_mode{rule="syn",mode="enforce"} 1.0
limiter_rule_mode{rule="syn",mode="shadow"} 0.0
# HELP limiter_bypass 1 for the bypass in force; anything but off means nothing is refused
# TYPE limiter_bypass gauge
limiter_bypass{mode="off"} 0.0
limiter_bypass{mode="shadow"} 1.0
limiter_bypass{mode="pass"} 0.0
# HELP limiter_interface_attached 1 for the way in which the program is attached, all 0 if not
# TYPE limiter_interface_attached gauge
limiter_interface_attached{interface="eth0",mode="native"} 1.0
limiter_interface_attached{interface="eth0",mode="generic"} 0.0
limiter_interface_attached{interface="eth1",mode="native"} 0.0
limiter_interface_attached{interface="eth1",mode="generic"} 0.0
# HELP limiter_table_slots Keys that the table can hold at most
# TYPE limiter_table_slots gauge
limiter_table_slots 1048576.0
# HELP limiter_table_live_slots Keys in the table whose windows are open
# TYPE limiter_table_live_slots gauge
limiter_table_live_slots 12.0
# HELP limiter_table_bytes Memory of the table, addresses included
# TYPE limiter_table_bytes gauge
# UNIT limiter_table_bytes bytes
limiter_table_bytes 25165824.0
# HELP limiter_heartbeat_age_seconds Time since the kernel program last saw the daemon alive
# TYPE limiter_heartbeat_age_seconds gauge
# UNIT limiter_heartbeat_age_seconds seconds
limiter_heartbeat_age_seconds 0.25
# HELP limiter_uptime_seconds Time since the daemon started
# TYPE limiter_uptime_seconds gauge
# UNIT limiter_uptime_seconds seconds
limiter_uptime_seconds 60.0
# HELP limiter_build_info 1, labelled with the program's version
# TYPE limiter_build_info gauge
limiter_build_info{version="0.1.0"} 1.0
# EOF
"#;
    assert_eq!(text(observation()).unwrap(), expected);
}

#[test]
fn counters_end_in_total_and_nothing_else_does() {
    let text = text(observation()).unwrap();
    let mut counter = false;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            counter = kind.ends_with(" counter");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            assert_eq!(name.ends_with("_total"), counter, "{line}");
            assert!(name.starts_with("limiter_"), "{line}");
        }
    }
}

#[test]
fn no_two_metrics_share_a_name() {
    let text = text(observation()).unwrap();
    let mut names: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_rules_name_cannot_break_out_of_its_label() {
    let mut seen = observation();
    seen.gauges.rules = vec![("a\"b\nc".into(), "enforce".into())];
    let text = text(seen).unwrap();
    assert!(text.contains(r#"limiter_rule_mode{rule="a\"b\nc",mode="enforce"} 1.0"#), "{text}");
}
