//! What map `REGISTRY` says after a crash. It is written row by row before the flip, so it may speak of a
//! policy that never came into force, or of half of one. Pure: changes no map.
//!
//! Why in this order: names are nowhere else in the maps, so what is new must be in the registry before
//! packets are counted under it. What is old can be told from the rules in force, which hold all that an id
//! stands for. So, wherever an installation ends:
//!
//! - before the registry's first row: it says what it said. Ids may have been taken; none is given again.
//! - among the rows, or before the flip: rows of rules in force have their old name, since no policy takes
//!   a row from the one before it; the rest of them is put right here. All other rows belong to rules that
//!   aren't in force, with ids in no word and counters at zero if they are new.
//! - after the flip: the registry says what the rules say, and nothing is changed here.

use limiter_common::layout::{RegistryEntry, RuleEntry, Unit};

/// For rows whose rule isn't in force although they say so: before all others to be given away.
const LONG_AGO: u64 = 1;

/// Makes the registry say of the rules in force what they say themselves, and of all others that they aren't.
pub(super) fn settle(rows: &mut [RegistryEntry], in_force: &[RuleEntry]) {
    for (at, row) in (0..).zip(rows) {
        match in_force.iter().find(|rule| rule.row() == at) {
            Some(rule) => {
                let (bytes, shift) = match rule.unit() {
                    Unit::Packets => (0, 0),
                    Unit::Bytes(quantum) => (1, quantum.shift()),
                };
                let (id, window) = (rule.id(), rule.window().ticks());
                *row = RegistryEntry { name: row.name, retired: 0, id, window, bytes, shift };
            }
            None if row.retired == 0 && row.id != 0 => row.retired = LONG_AGO,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::policy::Policy;
    use crate::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};

    /// One rule for each name and further keys.
    fn policy(rules: &[(&str, &str)]) -> Policy {
        let mut text = String::from("schema = 1\n");
        for (name, keys) in rules {
            let rule = "match = [{ protocol = \"tcp\" }]\nlimit = { source = 20 }";
            write!(text, "[[rule]]\nname = \"{name}\"\n{rule}\n{keys}\n").unwrap();
        }
        Policy::parse(&text).unwrap().policy
    }

    fn compile(policy: &Policy, registry: &Registry, now: u64) -> Snapshot {
        let modes = ModeOverrides::default();
        Snapshot::compile(policy, registry, &modes, 1, UnixNanos(now)).unwrap()
    }

    fn in_force(snapshot: &Snapshot) -> Vec<RuleEntry> {
        snapshot.rules.iter().filter(|rule| rule.id() != 0).copied().collect()
    }

    /// The registry read after an installation of `next` over `last` that wrote so many rows.
    fn crashed(last: &Snapshot, next: &Snapshot, written: usize) -> Registry {
        let mut rows = last.registry.to_entries();
        rows[..written].copy_from_slice(&next.registry.to_entries()[..written]);
        settle(&mut rows, &in_force(last));
        Registry::from_entries(&rows, next.registry.next_rule_id())
    }

    fn places(snapshot: &Snapshot) -> Vec<(u32, u32)> {
        in_force(snapshot).iter().map(|rule| (rule.id(), rule.row())).collect()
    }

    #[test]
    fn wherever_an_installation_ends_the_policy_in_force_keeps_its_counts() {
        const TEN: &str = "window = \"10s\"";
        let gone = policy(&[("back", TEN), ("stays", TEN)]);
        let last = policy(&[("stays", TEN), ("window", TEN), ("leaves", TEN), ("bytes", TEN)]);
        let next = policy(&[
            ("back", TEN),
            ("stays", TEN),
            ("window", "window = \"1s\""),
            ("bytes", "window = \"10s\"\nunit = \"bytes\""),
            ("new", TEN),
        ]);
        let first = compile(&gone, &Registry::default(), 1_000);
        let last_compiled = compile(&last, &first.registry, 2_000);
        let next_compiled = compile(&next, &last_compiled.registry, 3_000);
        for written in 0..=last_compiled.registry.to_entries().len() {
            let registry = crashed(&last_compiled, &next_compiled, written);
            let again = compile(&last, &registry, 4_000);
            assert_eq!(places(&again), places(&last_compiled), "{written}");
            assert_eq!(again.reused_rows, [0; 0], "{written}: no count is zeroed");
            let new = compile(&next, &registry, 4_000);
            for (id, row) in places(&new) {
                for (old, old_row) in places(&last_compiled) {
                    assert!(id != old || row == old_row, "{written}: {id}");
                }
                assert!(id < new.registry.next_rule_id());
            }
            assert_eq!(places(&new)[1], places(&last_compiled)[0], "{written}: stays");
        }
    }

    #[test]
    fn a_crash_leaves_room_for_the_largest_policy() {
        let all = |prefix: &str| {
            let names: Vec<String> = (0..32).map(|n| format!("{prefix}{n}")).collect();
            let rules: Vec<_> = names.iter().map(|n| (n.as_str(), "window = \"1s\"")).collect();
            policy(&rules)
        };
        let last = compile(&all("a"), &Registry::default(), 1_000);
        let next = compile(&all("b"), &last.registry, 2_000);
        for written in 0..=next.registry.to_entries().len() {
            let registry = crashed(&last, &next, written);
            let third = compile(&all("c"), &registry, 3_000);
            let (rows, new) = (places(&last), places(&third));
            assert!(new.iter().all(|(id, row)| rows.iter().all(|(i, r)| i != id && r != row)));
        }
    }

    #[test]
    fn after_the_flip_nothing_is_changed() {
        let one = compile(&policy(&[("a", "window = \"1s\"")]), &Registry::default(), 1_000);
        let two = compile(&policy(&[("b", "window = \"1s\"")]), &one.registry, 2_000);
        let mut rows = two.registry.to_entries();
        settle(&mut rows, &in_force(&two));
        assert_eq!(Registry::from_entries(&rows, two.registry.next_rule_id()), two.registry);
    }
}
