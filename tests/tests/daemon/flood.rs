//! A flood with the present window written on each packet, so that the receiver's count per window
//! needs no clock of its own. It holds its breath around the edges: what is judged in one window is
//! never stamped with another.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::edge::{Edge, HOST, PORT};

/// Length of the flood's windows in milliseconds, and what it leaves free at either end.
pub(crate) const WINDOW_MS: u64 = 1_000;
const EDGE_MS: u64 = 100;
/// Packets between two breaths of a millisecond: far fewer than the link's ring holds.
const BURST: u32 = 20;

/// Runs until it is ended or dropped.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Offered>>,
}

/// What was sent.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    pub(crate) by_window: BTreeMap<u64, u64>,
    begun: u64,
    ended: u64,
    /// Windows that ended between a look at the clock and the end of a sending.
    pub(crate) spoiled: BTreeSet<u64>,
}

impl Flood {
    pub(crate) fn start(edge: &Edge, source: Ipv4Addr) -> Self {
        let socket = edge.outside.run(|| UdpSocket::bind((source, 0))).unwrap().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut offered = Offered { begun: now().0, ..Offered::default() };
            while !told.load(Ordering::Relaxed) {
                offered.burst(&socket);
                thread::sleep(Duration::from_millis(1));
            }
            offered.ended = now().0;
            offered
        });
        Self { stop, thread: Some(thread) }
    }

    pub(crate) fn end(mut self) -> Offered {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Offered {
    pub(crate) fn total(&self) -> u64 {
        self.by_window.values().sum()
    }

    /// Windows that the flood filled from begin to end.
    ///
    /// # Panics
    /// If there is none: then the machine is too slow to say anything.
    pub(crate) fn full(&self) -> Vec<u64> {
        let whole = (self.begun + 1..self.ended).filter(|window| !self.spoiled.contains(window));
        let full: Vec<u64> = whole.collect();
        assert!(!full.is_empty(), "{self:?}");
        full
    }

    fn burst(&mut self, socket: &UdpSocket) {
        let (window, phase) = now();
        if !(EDGE_MS..WINDOW_MS - EDGE_MS).contains(&phase) {
            return;
        }
        for _ in 0..BURST {
            socket.send_to(&window.to_be_bytes(), (HOST, PORT)).unwrap();
            *self.by_window.entry(window).or_default() += 1;
        }
        if now().0 != window {
            self.spoiled.extend([window, now().0]);
        }
    }
}

/// The present window and the milliseconds since its begin.
pub(crate) fn now() -> (u64, u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = u64::try_from(now.as_millis()).unwrap();
    (now / WINDOW_MS, now % WINDOW_MS)
}

/// All that arrived, by the window written on it.
pub(crate) fn arrived(edge: &Edge) -> BTreeMap<u64, u64> {
    let mut by_window = BTreeMap::new();
    let mut buffer = [0; 64];
    edge.sink.set_patience(Duration::from_millis(100)).unwrap();
    while let Some((_, length)) = edge.sink.receive(&mut buffer).unwrap() {
        let window = u64::from_be_bytes(buffer[..length].try_into().unwrap());
        *by_window.entry(window).or_default() += 1;
    }
    by_window
}
