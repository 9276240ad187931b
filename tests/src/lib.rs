//! The test kit.
pub mod program;
