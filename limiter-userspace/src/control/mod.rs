//! How the command line talks to the daemon: JSON over HTTP on a unix socket.

pub mod command;
pub mod model;
