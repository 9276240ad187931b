//! Fuzz targets: functions over any bytes that panic when something is wrong. libFuzzer drives them
//! (`cargo xtask fuzz`), and so does a smoke test without it (`tests/smoke.rs`), from one corpus of named
//! seeds. They reach limiter by its public functions alone.

pub mod claim;
pub mod corpus;
pub mod mutate;
pub mod parser;
pub mod policy;

use corpus::Form;

/// One thing to fuzz.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its folder in `corpus/`, and what `cargo xtask fuzz` calls it.
    pub name: &'static str,
    /// Panics if it finds something.
    pub run: fn(&[u8]),
    /// How its seeds are written.
    pub form: Form,
}

/// All of them.
pub const TARGETS: [Target; 3] = [
    Target { name: "parser", run: parser::run, form: Form::Hex },
    Target { name: "claim", run: claim::run, form: Form::Hex },
    Target { name: "policy", run: policy::run, form: Form::Toml },
];

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}
