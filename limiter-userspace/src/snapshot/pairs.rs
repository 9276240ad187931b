//! Which two rules should share a bucket: rules that judge the same packets, so that such a packet fetches
//! one line for both.

use limiter_common::layout::{Classifier, MAX_RULES};

use super::classes::Classes;

/// For each rule, by its place, the one that shares most packets with it, if they chose each other. Pairs
/// with the most cells of the classifier in common (protocols × kinds × ports) come first.
pub(super) fn partners(classes: &Classes, rules: usize) -> Vec<Option<usize>> {
    let weights = weights(classes);
    let mut pairs: Vec<(u64, usize, usize)> = (0..rules)
        .flat_map(|one| (one + 1..rules).map(move |other| (one, other)))
        .map(|(one, other)| (shared(classes, &weights, one, other), one, other))
        .filter(|(weight, _, _)| *weight > 0)
        .collect();
    pairs.sort_by_key(|(weight, one, other)| (std::cmp::Reverse(*weight), *one, *other));
    let mut partners = vec![None; rules];
    for (_, one, other) in pairs {
        if partners[one].is_none() && partners[other].is_none() {
            (partners[one], partners[other]) = (Some(other), Some(one));
        }
    }
    partners
}

/// How many cells each class has, a port counted for each port of its row.
fn weights(classes: &Classes) -> Vec<u64> {
    let table = &classes.classifier;
    let mut ports = [0_u64; Classifier::PORTS as usize];
    ports[Classifier::NO_PORT as usize] = 1;
    table.port.iter().for_each(|row| ports[*row as usize] += 1);
    let mut columns = [0_u64; Classifier::PROTOCOLS as usize];
    table.protocol.iter().take(256).for_each(|column| columns[*column as usize] += 1);
    let mut weights = vec![0; classes.sets.len()];
    for (cell, class) in table.class.iter().enumerate().filter(|(cell, _)| cell >> 8 & 7 < 2) {
        let (column, port) = (columns[cell >> 11], ports[cell & 0xff]);
        weights[*class as usize] += column * port;
    }
    weights
}

fn shared(classes: &Classes, weights: &[u64], one: usize, other: usize) -> u64 {
    debug_assert!(one < MAX_RULES as usize && other < MAX_RULES as usize);
    let both = 1 << one | 1 << other;
    let sets = classes.sets.iter().zip(weights);
    sets.filter(|(set, _)| **set & both == both).map(|(_, weight)| weight).sum()
}
