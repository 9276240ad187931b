//! The three parties outside. Each sends real packets from sockets bound to its own addresses,
//! writes the present window on each, and counts what it offers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use limiter_tests::net::Namespace;
use socket2::{Domain, Socket, Type};

use super::event::{Bell, Crew, Event};
use super::ledger::Party;
use super::stage::{EDGE, FLOOD, POLITE, PREFIX};
use super::window::Moment;

/// Where the receivers listen.
pub(super) const SERVICE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(EDGE, 7000));
pub(super) const SINK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(EDGE, 7001));

/// What each party offers in a window. The /24: 10 from each source, half of what a source may.
const POLITE_OFFER: u64 = 10;
const FLOOD_OFFER: u64 = 2_000;
const PREFIX_OFFER: u64 = 1_000;
/// Sources in the flooding /24: its addresses 1 to 100.
const PREFIX_SOURCES: u8 = 100;

/// Short against a second, long against a packet's spacing.
const STEP: Duration = Duration::from_millis(5);
/// A refused SYN is sent again after a second; giving up before keeps one try one packet.
const PATIENCE: Duration = Duration::from_millis(800);

/// The present moment by the clock that limiter's windows follow.
pub(super) fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Starts all three.
pub(super) fn start(outside: &Namespace, crew: &mut Crew, events: &Sender<Event>) -> Result<()> {
    let flood = sockets(outside, &[FLOOD])?;
    let prefix: Vec<Ipv4Addr> = (1..=PREFIX_SOURCES)
        .map(|host| Ipv4Addr::new(PREFIX[0], PREFIX[1], PREFIX[2], host))
        .collect();
    let prefix = sockets(outside, &prefix)?;
    let polite = outside.handle()?;
    crew.start(events.clone(), move |bell, events| {
        polite.enter()?;
        offer(Party::Polite, POLITE_OFFER, bell, events, |window, _| {
            connect(window);
            Ok(())
        })
    });
    crew.start(events.clone(), move |bell, events| {
        offer(Party::Flood, FLOOD_OFFER, bell, events, |window, turn| send(&flood, window, turn))
    });
    crew.start(events.clone(), move |bell, events| {
        offer(Party::Prefix, PREFIX_OFFER, bell, events, |window, turn| send(&prefix, window, turn))
    });
    Ok(())
}

/// Offers evenly, window after window, until the bell rings; never near an edge.
fn offer(
    party: Party,
    per_window: u64,
    bell: &Bell,
    events: &Sender<Event>,
    mut one: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let (mut window, mut sent) = (now().window(), now().due(per_window));
    while !bell.has_rung() {
        let moment = now();
        if moment.window() != window {
            (window, sent) = (moment.window(), 0);
        }
        if moment.is_busy() && sent < moment.due(per_window) {
            events.send(Event::Offered(party, window))?;
            one(window, sent)?;
            sent += 1;
            if now().window() != window {
                events.send(Event::Spoiled(window))?;
            }
        } else {
            std::thread::sleep(STEP);
        }
    }
    Ok(())
}

fn sockets(outside: &Namespace, sources: &[Ipv4Addr]) -> Result<Vec<UdpSocket>> {
    let bind = || {
        sources
            .iter()
            .map(|source| UdpSocket::bind((*source, 0)))
            .collect::<std::io::Result<Vec<_>>>()
    };
    outside.run(bind)?.context("can't bind the senders' sockets")
}

fn send(sources: &[UdpSocket], window: u64, turn: u64) -> Result<()> {
    let source = &sources[turn as usize % sources.len()];
    source
        .send_to(&window.to_be_bytes(), SINK)
        .context("can't send a packet of the flood")
        .map(drop)
}

/// One visit of the polite client. Failing is an outcome, not an error: the service counts whom it
/// has served.
fn connect(window: u64) {
    let _ = visit(window);
}

fn visit(window: u64) -> std::io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((POLITE, 0)).into())?;
    socket.connect_timeout(&SERVICE.into(), PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut stream = TcpStream::from(socket);
    writeln!(stream, "{window}")?;
    BufReader::new(stream).read_line(&mut String::new()).map(drop)
}
