//! Every target over its named corpus and a fixed number of inputs made from it. Finds what is easy to
//! find, on every run; `cargo xtask fuzz` finds the rest.

use std::thread::panicking;

use limiter_fuzz::corpus::{Form, seeds, to_hex};
use limiter_fuzz::mutate::{Mutator, words};
use limiter_fuzz::{TARGETS, Target};

/// Prints the input if the target panics on it.
struct Shown<'a>(Target, &'a str, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if !panicking() {
            return;
        }
        let Self(target, origin, bytes) = self;
        let written = match target.form {
            Form::Hex => to_hex(bytes),
            Form::Toml => String::from_utf8_lossy(bytes).into_owned(),
        };
        eprintln!(
            "{}: this input fails ({origin}); put it into the corpus:\n{written}",
            target.name
        );
    }
}

fn smoke(name: &str, inputs: usize) {
    let Some(target) = Target::named(name) else { panic!("no target {name}") };
    let seeds = seeds(target).unwrap_or_else(|error| panic!("{error}"));
    for seed in &seeds {
        let _shown = Shown(target, &seed.name, &seed.bytes);
        (target.run)(&seed.bytes);
    }
    let words = match target.form {
        Form::Hex => Vec::new(),
        Form::Toml => words(include_str!("../policy.dict")),
    };
    let mut mutator = Mutator::new(&seeds, &words);
    for _ in 0..inputs {
        let input = mutator.input();
        let _shown = Shown(target, "made from seeds", &input);
        (target.run)(&input);
    }
}

#[test]
fn the_parser_reads_any_frame_as_etherparse_does() {
    smoke("parser", 100_000);
}

#[test]
fn claims_conserve_tokens_in_any_order() {
    smoke("claim", 20_000);
}

#[test]
fn any_policy_is_read_or_refused_in_full() {
    smoke("policy", 5_000);
}

#[test]
fn each_target_has_its_smoke() {
    assert_eq!(TARGETS.map(|target| target.name), ["parser", "claim", "policy"]);
}
