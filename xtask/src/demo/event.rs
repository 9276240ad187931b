//! What the threads of the demo tell its one loop, and the bell that ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use super::ledger::{Ledger, Party};

/// Something that happened. The number is the window written on the packet or connection.
#[derive(Debug)]
pub(super) enum Event {
    Offered(Party, u64),
    Admitted(Party, u64),
    /// A sender was held up across the end of this window.
    Spoiled(u64),
    /// A thread can't go on.
    Failed(anyhow::Error),
}

impl Event {
    /// Enters it into the ledger, or hands back the failure.
    pub(super) fn enter(self, ledger: &mut Ledger) -> anyhow::Result<()> {
        match self {
            Self::Offered(party, window) => ledger.offered(window, party),
            Self::Admitted(party, window) => ledger.admitted(window, party),
            Self::Spoiled(window) => ledger.spoiled(window),
            Self::Failed(error) => return Err(error),
        }
        Ok(())
    }
}

/// Rung once; whoever looks knows that it is time to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Bell(Arc<AtomicBool>);

impl Bell {
    /// A bell that SIGINT, SIGTERM and SIGHUP ring, so that a demo that is broken off still cleans
    /// up. A second signal ends the process where it stands; the next demo then cleans up.
    pub(super) fn on_signals() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let bell = Self::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&bell.0))?;
            signal_hook::flag::register(signal, Arc::clone(&bell.0))?;
        }
        Ok(bell)
    }

    pub(super) fn ring(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_rung(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Threads that end when their bell rings; rung and waited for on drop, so that none outlives the
/// namespaces it works in.
#[derive(Debug, Default)]
pub(super) struct Crew {
    bell: Bell,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Starts a thread that reports its own failure.
    pub(super) fn start(
        &mut self,
        events: Sender<Event>,
        work: impl FnOnce(&Bell, &Sender<Event>) -> anyhow::Result<()> + Send + 'static,
    ) {
        let bell = self.bell.clone();
        self.threads.push(std::thread::spawn(move || {
            if let Err(error) = work(&bell, &events) {
                // Nobody listens any more: then nobody needs to know.
                let _ = events.send(Event::Failed(error));
            }
        }));
    }

    /// Ends all of them.
    pub(super) fn dismiss(&mut self) {
        self.bell.ring();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.dismiss();
    }
}
