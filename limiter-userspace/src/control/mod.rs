//! How the command line talks to the daemon: JSON over HTTP on a unix socket.

pub mod ask;
pub mod client;
pub mod command;
pub(crate) mod graceful;
pub mod model;
pub mod server;
pub mod socket;
