//! Runs every scenario once per round, so that a slow spell of the machine hits all alike, and keeps
//! what each round gave.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::scenario::Scenario;

/// A figure's rounds, sorted.
pub(crate) struct Figure(Vec<f64>);

impl Figure {
    /// From at least one round.
    pub(crate) fn new(mut rounds: Vec<f64>) -> Self {
        rounds.sort_unstable_by(f64::total_cmp);
        Self(rounds)
    }

    pub(crate) fn median(&self) -> f64 {
        let (low, high) = (self.at((self.0.len().max(1) - 1) / 2), self.at(self.0.len() / 2));
        (low + high) / 2.0
    }

    pub(crate) fn least(&self) -> f64 {
        self.at(0)
    }

    pub(crate) fn most(&self) -> f64 {
        self.at(self.0.len().max(1) - 1)
    }

    fn at(&self, index: usize) -> f64 {
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// Figures by name.
pub(crate) type Figures = BTreeMap<&'static str, Figure>;

/// Measures them all, `rounds` times.
pub(crate) fn measure(scenarios: &mut [(&'static str, Scenario)], rounds: u32) -> Result<Figures> {
    let mut slices: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for (name, scenario) in scenarios.iter_mut() {
            let nanos = scenario.slice().with_context(|| format!("measuring {name}"))?;
            slices.entry(*name).or_default().push(nanos);
        }
    }
    Ok(slices.into_iter().map(|(name, rounds)| (name, Figure::new(rounds))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(Figure::new(vec![4.0, 1.0, 2.0]).median(), 2.0);
        let figure = Figure::new(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!((figure.median(), figure.least(), figure.most()), (2.5, 1.0, 4.0));
    }
}
