//! Makes the exporter, which listens on loopback inside the edge's namespace, reachable on the host's
//! own loopback: connections are carried over byte by byte, nothing of the host's network is changed.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context as _, Result};
use limiter_tests::net::Namespace;

use super::event::{Bell, Crew, Event};

/// The port people know, if it is free.
const USUAL_PORT: u16 = 9184;
const STEP: Duration = Duration::from_millis(50);
/// A scrape that says nothing for this long is over.
const PATIENCE: Duration = Duration::from_secs(2);

/// Carries connections to `exporter` inside `edge`; returns where the host can reach it.
pub(super) fn start(
    edge: &Namespace,
    exporter: SocketAddr,
    crew: &mut Crew,
    events: &Sender<Event>,
) -> Result<SocketAddr> {
    let listener = listen().context("can't listen for scrapes on 127.0.0.1")?;
    let address = listener.local_addr().context("can't ask a socket's address")?;
    let inside = edge.handle()?;
    crew.start(events.clone(), move |bell, _| {
        // The listener stays where it was made; connections made from here on are inside.
        inside.enter()?;
        accept(&listener, exporter, bell)
    });
    Ok(address)
}

fn listen() -> std::io::Result<TcpListener> {
    let usual = TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL_PORT));
    let listener = usual.or_else(|_taken| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn accept(listener: &TcpListener, exporter: SocketAddr, bell: &Bell) -> Result<()> {
    let mut scrapes = Vec::new();
    while !bell.has_rung() {
        match listener.accept() {
            // A scrape that fails is the scraper's to report.
            Ok((scraper, _)) => {
                scrapes.push(std::thread::spawn(move || drop(carry(&scraper, exporter))))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(STEP),
            Err(error) => return Err(error).context("can't accept a scrape"),
        }
        scrapes.retain(|scrape| !scrape.is_finished());
    }
    Ok(())
}

fn carry(scraper: &TcpStream, exporter: SocketAddr) -> std::io::Result<()> {
    let exporter = TcpStream::connect_timeout(&exporter, PATIENCE)?;
    scraper.set_nonblocking(false)?;
    for side in [scraper, &exporter] {
        side.set_read_timeout(Some(PATIENCE))?;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| copy(scraper, &exporter));
        copy(&exporter, scraper);
    });
    Ok(())
}

/// Copies until one side falls silent, then tells the other that no more will come.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use limiter_tests::require;
    use limiter_tests::require::{root, tool};

    use super::*;

    #[test]
    fn a_scrape_on_the_host_reaches_the_exporter_inside() {
        require!(root(), tool("ip"));
        let edge = Namespace::create("demo-test").unwrap();
        let exporter = edge.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let address = exporter.local_addr().unwrap();
        let (events, _heard) = std::sync::mpsc::channel();
        let mut crew = Crew::default();
        let reachable = start(&edge, address, &mut crew, &events).unwrap();

        let answering = std::thread::spawn(move || {
            let (mut scrape, _) = exporter.accept().unwrap();
            let mut request = [0; 14];
            scrape.read_exact(&mut request).unwrap();
            scrape.write_all(b"limiter_up 1").unwrap();
            request
        });
        let mut scraper = TcpStream::connect(reachable).unwrap();
        scraper.write_all(b"GET /metrics\r\n").unwrap();
        let mut answer = String::new();
        scraper.read_to_string(&mut answer).unwrap();

        assert_eq!(answer, "limiter_up 1");
        assert_eq!(&answering.join().unwrap(), b"GET /metrics\r\n");
    }
}
