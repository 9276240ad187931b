//! `limiter explain ADDRESS`: every pool the address draws from, and what its next packet would get.

use std::net::IpAddr;

use clap::Args;

use super::Global;
use super::error::CliError;
use super::output;
use super::text::{Side, limit, moment, number, table, tame};
use crate::control::model::{Explanation, LevelExplanation, RuleExplanation};

/// Show what each rule holds against an address: limits, use, and its next packet's verdict
#[derive(Args, Debug)]
#[command(
    after_help = "Example: limiter explain 192.0.2.7\n         limiter explain 2001:db8::1 --json"
)]
pub(super) struct Explain {
    /// An IPv4 or IPv6 address
    address: IpAddr,
}

impl Explain {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let explanation = global.client().explain(self.address).await?;
        output::answer(global.json, &explanation, page)
    }
}

fn page(explanation: &Explanation) -> String {
    let mut text = format!(
        "{} under policy version {}\n",
        tame(&explanation.address),
        explanation.policy_version
    );
    if explanation.bypass != "off" {
        text += &format!(
            "!! BYPASS {}: whatever is said below, nothing is refused\n",
            tame(&explanation.bypass)
        );
    }
    if explanation.rules.is_empty() {
        text += "no rule in force: everything passes\n";
    }
    explanation.rules.iter().fold(text, |text, one| text + "\n" + &rule(one))
}

fn rule(rule: &RuleExplanation) -> String {
    let head = [
        ("  LEVEL", Side::Left),
        ("KEY", Side::Left),
        ("USED", Side::Right),
        ("LIMIT", Side::Right),
        ("WINDOW", Side::Right),
        ("ENDS IN", Side::Right),
    ];
    format!(
        "rule {} ({}), {}, counts {}\n{}  next packet: {}\n",
        tame(&rule.rule),
        tame(&rule.mode),
        tame(&rule.matches),
        tame(&rule.unit),
        table(head, rule.levels.iter().map(level)),
        tame(&rule.next)
    )
}

fn level(level: &LevelExplanation) -> [String; 6] {
    let ends = match level.ends_in_ms {
        0 => "-".to_owned(),
        left => moment(left),
    };
    [
        format!("  {}", level.level),
        level.key.clone(),
        number(level.used),
        limit(level.limit),
        moment(level.window_ms),
        ends,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation() -> Explanation {
        serde_json::from_str(include_str!("../../tests/fixtures/explain.json")).unwrap()
    }

    #[test]
    fn shows_each_pool_and_the_next_verdict() {
        let expected = "\
192.0.2.7 under policy version 7

rule new-connections (enforce), tcp tcp-syn to 80, 443, counts packets
  LEVEL   KEY            USED      LIMIT  WINDOW  ENDS IN
  total   all           1,200  unlimited  10.0 s    3.2 s
  prefix  192.0.2.0/24     34        200  10.0 s    3.2 s
  source  192.0.2.7        20         20  10.0 s    3.2 s
  next packet: refuse (source)

rule udp-volume (shadow), udp, counts bytes
  LEVEL   KEY        USED       LIMIT  WINDOW  ENDS IN
  source  192.0.2.7     0  50,000,000   1.0 s        -
  next packet: pass
";
        assert_eq!(page(&explanation()), expected);
    }

    #[test]
    fn a_bypass_is_said_aloud() {
        let mut explanation = explanation();
        explanation.bypass = "pass".into();
        explanation.rules.clear();
        let expected = "\
192.0.2.7 under policy version 7
!! BYPASS pass: whatever is said below, nothing is refused
no rule in force: everything passes
";
        assert_eq!(page(&explanation), expected);
    }
}
