//! What limiter's kernel program and its daemon must agree on: how a packet is read, which pool it
//! belongs to, how a token is claimed, and how all of that lies in memory.
//!
//! No `std`, no allocation, no clock, no I/O, no floating point. Everything here runs unchanged in
//! the kernel, in the daemon, under loom and under a fuzzer.

#![cfg_attr(not(any(test, loom)), no_std)]

pub mod border;
pub mod bucket;
pub mod clock;
pub mod counters;
#[cfg(any(test, feature = "doubles"))]
pub mod doubles;
pub mod frame;
pub mod hash;
pub mod judge;
pub mod key;
pub mod layout;
pub mod packet;
pub mod parse;
pub mod quantum;
pub mod take;
pub mod ticket;
pub mod verdict;
pub mod want;
pub mod word;
