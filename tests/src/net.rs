//! Networks to test in: namespaces joined by veth pairs, real sockets and raw frames inside them.
//! Everything made here is taken down on drop, and by the next run if this one is killed.

mod cpu;
mod frames;
mod namespace;
mod queues;
mod sink;
mod sweep;
mod veth;
mod xdp;

pub use cpu::on_cpu;
#[cfg(feature = "kernel")]
pub(crate) use cpu::pin;
pub use frames::FrameSocket;
pub use namespace::{Handle, Namespace};
pub use queues::queue_packets;
pub use sink::UdpSink;
pub use sweep::sweep;
pub use veth::{End, veth, veth_with_queues};
pub use xdp::{Attached, Mode, attached};

/// Why a network couldn't be set up or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A command ran and failed.
    #[error("`{command}` failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// What it wrote to its standard error.
        message: String,
    },
    /// A system call failed.
    #[error("can't {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// `ip -json` answered something unexpected.
    #[error("can't read the answer of `{command}`: {answer}")]
    Answer {
        /// The command line.
        command: String,
        /// What it wrote.
        answer: String,
    },
}

impl Error {
    fn system(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }
}

/// A `Result` of this module.
pub type Result<T> = std::result::Result<T, Error>;
