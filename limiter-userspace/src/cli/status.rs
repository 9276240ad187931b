//! `limiter status`: the state of everything, on one page, trouble first.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use limiter_common::layout::Bypass;

use super::error::CliError;
use super::output;
use super::text::{Side, memory, number, percent, span, table, tame, tame_lines};
use super::{Global, text};
use crate::control::client::ClientError;
use crate::control::model::{ModeOverride, RuleStatus, Status};
use crate::datapath::{Pins, attach, bypass};

/// Show the state of the daemon: trouble, policy, interfaces, rules and their counts
#[derive(Args, Debug)]
#[command(after_help = "Example: limiter status\n         limiter status --json")]
pub(super) struct StatusVerb {}

impl StatusVerb {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let status = match global.client().status().await {
            Err(none @ ClientError::NoDaemon { .. }) => {
                return Err(match pinned(&global.pins()) {
                    Some(pinned) => CliError::NoDaemon { none, pinned },
                    None => none.into(),
                });
            }
            answer => answer?,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        output::answer(global.json, &status, |status| page(status, now))
    }
}

/// What holds without a daemon, if anything was ever pinned.
fn pinned(pins: &Pins) -> Option<String> {
    let linked = pins.linked();
    if linked.is_empty() && !pins.in_use() {
        return None;
    }
    let guards = linked.iter().filter_map(|name| {
        let mode = attach::look(pins, name).ok()?.mode?;
        Some(format!("{} ({})", tame(name), mode.name()))
    });
    let guards = guards.collect::<Vec<_>>();
    Some(match (guards.as_slice(), bypass::get(pins)) {
        ([], _) => "no interface is guarded: nothing is limited".to_owned(),
        (guards, Ok(Bypass::Off)) => {
            format!("limits still hold on {}; bypass off", guards.join(", "))
        }
        (guards, Ok(bypass)) => format!(
            "the program is still on {}, but bypass {}: NOTHING IS REFUSED; end it with `limiter bypass off`",
            guards.join(", "),
            bypass::name(bypass)
        ),
        (guards, Err(error)) => {
            format!("the program is still on {}; bypass unknown: {error}", guards.join(", "))
        }
    })
}

fn page(status: &Status, now: u64) -> String {
    let trouble = trouble(status) + &warnings(&status.policy.warnings);
    let gap = if trouble.is_empty() { "" } else { "\n" };
    format!(
        "{trouble}{gap}{}\n{}\n{}\n{}",
        head(status, now),
        interfaces(status),
        rules(&status.policy.rules, now),
        totals(status)
    )
}

/// What an operator must not miss; empty if all is well.
fn trouble(status: &Status) -> String {
    let mut lines = Vec::new();
    match status.bypass.as_str() {
        "off" => {}
        "pass" => lines.push(
            "BYPASS pass: packets are neither judged nor counted by rules; end it with `limiter bypass off`".to_owned(),
        ),
        other => lines.push(format!(
            "BYPASS {other}: rules judge and count, nothing is refused; end it with `limiter bypass off`"
        )),
    }
    lines.extend(status.pins_problem.clone());
    if status.policy.version == 0 {
        lines.push(
            "NO POLICY in force: everything passes; apply one with `limiter policy apply FILE`"
                .to_owned(),
        );
    }
    for interface in status.interfaces.iter().filter(|interface| interface.attached == "none") {
        let why = interface.problem.as_deref().unwrap_or("no reason known");
        lines.push(format!("NOT ATTACHED {}: {why}", interface.name));
    }
    if let Some(why) = &status.policy.last_refusal {
        lines.push(format!(
            "LAST POLICY CHANGE REFUSED, policy {} stays: {why}",
            status.policy.version
        ));
    }
    if let Some(path) = &status.policy.file_gone {
        lines.push(format!(
            "POLICY FILE GONE: {path}; its policy holds, but a restart needs the file"
        ));
    }
    lines.iter().map(|line| format!("!! {}\n", tame_lines(line).replace('\n', "\n   "))).collect()
}

/// What somebody may have meant, and may not.
fn warnings(warnings: &[String]) -> String {
    let line =
        |warning: &String| format!("warning: {}\n", tame_lines(warning).replace('\n', "\n   "));
    warnings.iter().map(line).collect()
}

fn head(status: &Status, now: u64) -> String {
    let Status { program_version, pid, uptime_s, policy, .. } = status;
    let metrics = match &status.metrics {
        Some(address) => format!("http://{address}/metrics"),
        None => "off".to_owned(),
    };
    let policy = match policy.version {
        0 => "policy     none".to_owned(),
        version => format!(
            "policy     version {version} from {}, in force for {}",
            tame(&policy.origin),
            span(now.saturating_sub(policy.applied_unix_s))
        ),
    };
    format!(
        "limiter    {program_version}, pid {pid}, up {}\n{policy}\nbypass     {}\nheartbeat  {:.1} s ago\nmetrics    {metrics}\n",
        span(*uptime_s),
        status.bypass,
        status.heartbeat_age_s,
    )
}

fn interfaces(status: &Status) -> String {
    let rows = status.interfaces.iter().map(|interface| {
        let attached = match interface.attached.as_str() {
            "none" => "NO".to_owned(),
            mode => mode.to_owned(),
        };
        let index = interface.index.map_or_else(|| "gone".to_owned(), |index| index.to_string());
        [interface.name.clone(), index, attached]
    });
    table([("INTERFACE", Side::Left), ("INDEX", Side::Right), ("ATTACHED", Side::Left)], rows)
}

fn rules(rules: &[RuleStatus], now: u64) -> String {
    let head = [
        ("RULE", Side::Left),
        ("MODE", Side::Left),
        ("PASSED", Side::Right),
        ("REFUSED", Side::Right),
        ("WOULD REFUSE", Side::Right),
        ("", Side::Left),
    ];
    table(
        head,
        rules.iter().map(|rule| {
            let set = rule.mode_override.as_ref().map(|set| set_by(set, now)).unwrap_or_default();
            let [passed, refused, would] =
                [rule.passed, rule.refused, rule.would_refuse].map(text::number);
            [rule.name.clone(), rule.mode.clone(), passed, refused, would, set]
        }),
    )
}

fn set_by(set: &ModeOverride, now: u64) -> String {
    let ago = span(now.saturating_sub(set.since_unix_s));
    format!("set to {} by {} {ago} ago: {}", set.mode, set.owner, set.reason)
}

fn totals(status: &Status) -> String {
    let Status { passed, refused, table, .. } = status;
    format!(
        "frames     {} passed, {} refused ({})\ntable      {} of {} slots in use ({}), {}\n",
        number(*passed),
        number(*refused),
        percent(*refused, passed.saturating_add(*refused)),
        number(table.live),
        number(table.slots),
        percent(table.live, table.slots),
        memory(table.bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_008_000;

    fn status() -> Status {
        serde_json::from_str(include_str!("../../tests/fixtures/status.json")).unwrap()
    }

    #[test]
    fn a_healthy_host_on_one_page() {
        let expected = "\
limiter    0.1.0, pid 4711, up 3d 4h
policy     version 7 from /etc/limiter/policy.toml, in force for 2h 13m
bypass     off
heartbeat  0.3 s ago
metrics    http://127.0.0.1:9184/metrics

INTERFACE  INDEX  ATTACHED
eth0           2  native
eth1           3  generic

RULE             MODE        PASSED  REFUSED  WOULD REFUSE
new-connections  enforce  1,234,567   23,456             0
udp-volume       shadow     987,654        0         1,200  set to shadow by anna 12m 30s ago: bursts at noon

frames     12,345,678 passed, 234,567 refused (1.9 %)
table      12,345 of 1,048,576 slots in use (1.2 %), 24.0 MiB
";
        assert_eq!(page(&status(), NOW), expected);
    }

    #[test]
    fn trouble_comes_first() {
        let mut status = status();
        status.bypass = "shadow".into();
        status.interfaces[1].attached = "none".into();
        status.interfaces[1].index = None;
        status.interfaces[1].problem = Some("no such interface; bring it back".into());
        status.policy.last_refusal = Some(
            "p.toml: 2 mistakes:\nrule \"a\": limit missing\nrule \"b\": unknown key\x1b".into(),
        );
        status.policy.warnings =
            vec!["rule: there is none: everything passes; add a [[rule]]".into()];
        let page = page(&status, NOW);
        let expected = "\
!! BYPASS shadow: rules judge and count, nothing is refused; end it with `limiter bypass off`
!! NOT ATTACHED eth1: no such interface; bring it back
!! LAST POLICY CHANGE REFUSED, policy 7 stays: p.toml: 2 mistakes:
   rule \"a\": limit missing
   rule \"b\": unknown key?
warning: rule: there is none: everything passes; add a [[rule]]

limiter    0.1.0, pid";
        assert!(page.starts_with(expected), "{page}");
        assert!(page.contains("\neth1        gone  NO\n"), "{page}");
    }

    #[test]
    fn what_was_removed_under_the_daemon_is_told() {
        let mut status = status();
        status.pins_problem = Some("the pins in /pins are gone: BYPASS; restart limiter".into());
        status.policy.file_gone = Some("/p.toml".into());
        let page = page(&status, NOW);
        let expected = "\
!! the pins in /pins are gone: BYPASS; restart limiter
!! POLICY FILE GONE: /p.toml; its policy holds, but a restart needs the file

limiter ";
        assert!(page.starts_with(expected), "{page}");
    }

    #[test]
    fn no_policy_is_trouble() {
        let mut status = status();
        status.policy.version = 0;
        let page = page(&status, NOW);
        assert!(page.starts_with("!! NO POLICY in force: everything passes; apply one"), "{page}");
        assert!(page.contains("\npolicy     none\n"), "{page}");
    }
}
