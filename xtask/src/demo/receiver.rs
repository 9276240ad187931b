//! What stands behind the limiter: a TCP service and a UDP receiver. They alone decide what was
//! admitted; the daemon's own counters have no say here.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context as _, Result};
use limiter_tests::net::{Namespace, UdpSink};
use socket2::{Domain, Socket, Type};

use super::event::{Bell, Crew, Event};
use super::ledger::Party;
use super::stage::{FLOOD, POLITE, PREFIX};
use super::traffic::{SERVICE, SINK};

/// How long a receiver waits before it looks at the bell: it has seen all packets that were sent when
/// none came for this long.
const PATIENCE: Duration = Duration::from_millis(100);

/// Starts both; they run until all that was sent has been received.
pub(super) fn start(edge: &Namespace, crew: &mut Crew, events: &Sender<Event>) -> Result<()> {
    let sink = UdpSink::bind(edge, SINK)?;
    sink.set_patience(PATIENCE)?;
    let service = edge.run(|| listen(SERVICE))?.context("can't start the TCP service")?;
    crew.start(events.clone(), move |bell, events| count_packets(&sink, bell, events));
    crew.start(events.clone(), move |bell, events| serve(&service, bell, events));
    Ok(())
}

fn count_packets(sink: &UdpSink, bell: &Bell, events: &Sender<Event>) -> Result<()> {
    let mut buffer = [0; 64];
    loop {
        match sink.receive(&mut buffer)? {
            Some((source, length)) => {
                if let Some(event) = arrival(source.ip(), &buffer[..length]) {
                    events.send(event)?;
                }
            }
            None if bell.has_rung() => return Ok(()),
            None => {}
        }
    }
}

fn arrival(source: IpAddr, payload: &[u8]) -> Option<Event> {
    let IpAddr::V4(source) = source else {
        return None;
    };
    let party = match source {
        FLOOD => Party::Flood,
        _ if source.octets()[..3] == PREFIX => Party::Prefix,
        _ => return None,
    };
    let window = u64::from_be_bytes(payload.try_into().ok()?);
    Some(Event::Admitted(party, window))
}

fn serve(service: &TcpListener, bell: &Bell, events: &Sender<Event>) -> Result<()> {
    loop {
        match service.accept() {
            // A connection that breaks off wasn't served.
            Ok((guest, address)) if address.ip() == IpAddr::V4(POLITE) => {
                if let Ok(window) = answer(guest) {
                    events.send(Event::Admitted(Party::Polite, window))?;
                }
            }
            Ok(_stranger) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                if bell.has_rung() {
                    return Ok(());
                }
            }
            Err(error) => return Err(error).context("the TCP service can't accept"),
        }
    }
}

/// Reads one line, the window of the visit, and answers it.
fn answer(mut guest: TcpStream) -> std::io::Result<u64> {
    guest.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(&guest).read_line(&mut line)?;
    let window = line.trim().parse().map_err(std::io::Error::other)?;
    writeln!(guest, "welcome")?;
    Ok(window)
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&address.into())?;
    socket.listen(128)?;
    // On Linux this bounds accept() too.
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(source: &str, payload: &[u8]) -> Option<(Party, u64)> {
        match arrival(source.parse().unwrap(), payload)? {
            Event::Admitted(party, window) => Some((party, window)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_packet_counts_for_its_sender_and_the_window_written_on_it() {
        let payload = 17_u64.to_be_bytes();
        assert_eq!(party("198.51.100.66", &payload), Some((Party::Flood, 17)));
        assert_eq!(party("203.0.113.100", &payload), Some((Party::Prefix, 17)));
        assert_eq!(party("198.51.100.67", &payload), None, "a stranger");
        assert_eq!(party("203.0.113.1", b"noise"), None);
    }
}
