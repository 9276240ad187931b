//! `limiter top`: the keys nearest to their limits, once or live.

use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::Global;
use super::error::CliError;
use super::output;
use super::screen::Screen;
use super::text::{Side, amount, bar, moment, number, table, tame};
use crate::control::client::ClientError;
use crate::control::command::TopBy;
use crate::control::model::{Top, TopRow};

/// Time between two looks of the live view.
const PERIOD: Duration = Duration::from_secs(1);

/// Show the busiest sources or prefixes, live until Ctrl-C
#[derive(Args, Debug)]
#[command(
    after_help = "Example: limiter top\n         limiter top --once --by prefix --limit 5\n         limiter top --json | jq .rows[0].key"
)]
pub(super) struct TopVerb {
    /// Print once and end
    #[arg(long)]
    once: bool,
    /// What to show
    #[arg(long, value_enum, default_value_t = TopBy::Source, value_name = "LEVEL")]
    by: TopBy,
    /// Rows at most
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

impl TopVerb {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        // The first answer comes before the screen changes, so that an error stays readable.
        let first = self.look(global).await?;
        if self.once {
            return output::answer(global.json, &first, page);
        }
        tokio::select! {
            ended = self.live(first, global) => ended,
            stopped = stop() => stopped,
        }
    }

    async fn look(&self, global: &Global) -> Result<Top, ClientError> {
        global.client().top(self.by, self.limit.into()).await
    }

    /// Never ends by itself; a daemon that goes away may come back.
    async fn live(&self, first: Top, global: &Global) -> Result<(), CliError> {
        let screen = if global.json { None } else { Screen::enter()? };
        let mut seen: Result<Top, ClientError> = Ok(first);
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.tick().await;
        loop {
            match (&screen, seen) {
                (Some(screen), Ok(top)) => screen.draw(&page(&top))?,
                (Some(screen), Err(error)) => screen.draw(&format!("{error}\n"))?,
                (None, Ok(top)) => output::answer(global.json, &top, |top| page(top) + "\n")?,
                (None, Err(error)) => return Err(error.into()),
            }
            ticks.tick().await;
            seen = self.look(global).await;
        }
    }
}

/// Waits for Ctrl-C, or for the terminal or the system to end us.
async fn stop() -> Result<(), CliError> {
    let listen = |kind| signal(kind).map_err(CliError::Runtime);
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

fn page(top: &Top) -> String {
    let Top { by, live, rows } = top;
    let head = format!("top by {}, {} keys in use\n", tame(by), number(*live));
    if rows.is_empty() {
        return head + "none at present\n";
    }
    let columns = [
        ("KEY", Side::Left),
        ("RULE", Side::Left),
        ("", Side::Left),
        ("USED/LIMIT", Side::Right),
        ("", Side::Left),
        ("ENDS IN", Side::Right),
    ];
    head + "\n" + &table(columns, rows.iter().map(row))
}

fn row(row: &TopRow) -> [String; 6] {
    let limit = row.limit.map_or("unlimited".to_owned(), |limit| amount(limit, &row.unit));
    let refused = match (row.refused, row.would_refuse) {
        (true, _) => "REFUSED",
        (_, true) => "would refuse",
        _ => "",
    };
    [
        row.key.clone(),
        row.rule.clone(),
        bar(row.used, row.limit),
        format!("{}/{limit}", amount(row.used, &row.unit)),
        refused.to_owned(),
        moment(row.ends_in_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_share_of_each_limit() {
        let top: Top = serde_json::from_str(include_str!("../../tests/fixtures/top.json")).unwrap();
        let expected = "\
top by source, 12,345 keys in use

KEY              RULE                                USED/LIMIT           ENDS IN
192.0.2.7        new-connections  [##########]            20/20  REFUSED    3.2 s
2001:db8:1::/64  udp-volume       [####......]  20.1 MB/50.0 MB             0.4 s
198.51.100.9     new-connections  [          ]      7/unlimited             3.2 s
";
        assert_eq!(page(&top), expected);
    }

    #[test]
    fn says_that_there_is_nothing() {
        let top = Top { by: "prefix".into(), live: 0, rows: Vec::new() };
        assert_eq!(page(&top), "top by prefix, 0 keys in use\nnone at present\n");
    }
}
