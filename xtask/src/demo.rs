//! `cargo xtask demo`: limiter at work between two network namespaces, on real traffic, with a live
//! table and a verdict. What a packet is worth is decided by limiter alone; this only sends, receives,
//! counts and cleans up.

mod event;
mod forward;
mod ledger;
mod receiver;
mod screen;
mod stage;
mod style;
mod table;
mod traffic;
mod verdict;
mod window;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use limiter_tests::require;

use self::event::{Bell, Crew, Event};
use self::ledger::{Ledger, Window};
use self::screen::Screen;
use self::stage::Stage;
use self::style::Style;
use self::traffic::now;
use crate::build;
use crate::setup::{self, Need};

/// Show limiter at work: a polite client, a flooder and a flooding /24, real packets, a live table
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long traffic runs; from 20 on, at least one whole window is certain
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// End with one line of JSON: the verdict and the counts of each window
    #[arg(long)]
    json: bool,
    /// The same traffic with nothing in its way, for comparison; the verdict is a failure
    #[arg(long)]
    without_limiter: bool,
}

/// How often a terminal is redrawn.
const FRAME: Duration = Duration::from_millis(200);

pub(crate) fn run(args: Args) -> Result<()> {
    setup::ensure(Need::Test)?;
    can_run()?;
    if !args.without_limiter {
        build::kernel_program()?;
        build::daemon()?;
    }
    // From here on a signal only rings: everything below is taken down by being dropped.
    let bell = Bell::on_signals().context("can't watch for Ctrl-C")?;
    let mut stage = Stage::set_up()?;
    if !args.without_limiter {
        stage.start_limiter()?;
    }
    let played = play(&args, &mut stage, &bell)?;
    stage.check_limiter()?;
    drop(stage);
    conclude(&args, &played)
}

fn can_run() -> Result<()> {
    let needs = [require::root(), require::bpf(), require::tool("ip")];
    let missing: Vec<String> = needs.into_iter().filter_map(std::result::Result::err).collect();
    if !missing.is_empty() {
        bail!("the demo can't run: {}", missing.join("; "));
    }
    Ok(())
}

/// What traffic left behind.
struct Played {
    windows: Vec<Window>,
    metrics_url: Option<String>,
}

/// Runs all traffic, and shows it, until time is up or the bell rings.
fn play(args: &Args, stage: &mut Stage, bell: &Bell) -> Result<Played> {
    let (sender, events) = channel();
    // Dropped in the opposite order: nobody may send to receivers that are gone.
    let mut receivers = Crew::default();
    let mut senders = Crew::default();
    receiver::start(&stage.edge, &mut receivers, &sender)?;
    let metrics_url = metrics_url(args, stage, &mut receivers, &sender)?;
    let style = Style::of_stdout();
    let mut screen = Screen::new(style);
    screen.print(&table::stage(style, metrics_url.as_deref()))?;
    traffic::start(&stage.outside, &mut senders, &sender)?;
    drop(sender);

    let mut ledger = Ledger::new(now());
    watch(args.seconds, &events, &mut ledger, &mut screen, bell)?;
    let ended = now();
    senders.dismiss();
    receivers.dismiss();
    events.try_iter().try_for_each(|event| event.enter(&mut ledger))?;
    let windows = ledger.windows(ended);
    screen.finish(&windows)?;
    Ok(Played { windows, metrics_url })
}

fn metrics_url(
    args: &Args,
    stage: &Stage,
    crew: &mut Crew,
    events: &Sender<Event>,
) -> Result<Option<String>> {
    if args.without_limiter {
        return Ok(None);
    }
    let address = forward::start(&stage.edge, stage.exporter(), crew, events)?;
    Ok(Some(format!("http://{address}/metrics")))
}

/// The demo's one loop: enters what happens, draws what has been entered.
fn watch(
    seconds: u64,
    events: &Receiver<Event>,
    ledger: &mut Ledger,
    screen: &mut Screen,
    bell: &Bell,
) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut next_frame = Instant::now();
    while Instant::now() < end && !bell.has_rung() {
        match events.recv_timeout(FRAME) {
            Ok(event) => event.enter(ledger)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("all senders and receivers have ended"),
        }
        if Instant::now() >= next_frame {
            let moment = now();
            let left = end.saturating_duration_since(Instant::now()).as_secs();
            screen.show(&ledger.windows(moment), moment, left)?;
            next_frame += FRAME;
        }
    }
    Ok(())
}

fn conclude(args: &Args, played: &Played) -> Result<()> {
    let Played { windows, metrics_url } = played;
    let verdict = verdict::judge(windows);
    let style = Style::of_stdout();
    let mut screen = Screen::new(style);
    screen.print(&table::closing(style, &verdict))?;
    if args.json {
        let object = verdict::as_json(&verdict, windows, metrics_url.as_deref());
        screen.print(&format!("{object}\n"))?;
    }
    if !verdict.ok && !args.without_limiter {
        bail!("the demo's verdict isn't ok, for the reasons above");
    }
    Ok(())
}
