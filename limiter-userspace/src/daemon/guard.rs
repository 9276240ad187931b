//! The interfaces that the daemon was told to guard: attached at the start, looked at every second,
//! attached again when one comes back. `limiter detach` is respected.

use std::collections::BTreeMap;

use super::config::Attach;
use crate::control::model::InterfaceStatus;
use crate::datapath::attach::{self, Done, Guard, Mode};
use crate::datapath::{AttachError, Pins};

/// See the module.
#[derive(Debug)]
pub(super) struct Guards {
    pins: Pins,
    interfaces: Vec<String>,
    mode: Mode,
    /// What keeps an interface from being guarded as it should be.
    problems: BTreeMap<String, String>,
    /// Interfaces guarded that nobody configured, at the last look.
    strangers: Vec<String>,
    /// What the start has done, until it is settled.
    begun: Begun,
}

#[derive(Debug, Default)]
struct Begun {
    attached: Vec<String>,
    replaced: Vec<String>,
}

/// What is to be done about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    Nothing,
    Attach,
    Tell(String),
}

impl Guards {
    /// Attaches to all interfaces or, on the first error, to none that was free before. Then it is either
    /// [`Guards::settle`] or [`Guards::undo`].
    pub(super) fn begin(
        pins: Pins,
        interfaces: Vec<String>,
        attach: Attach,
    ) -> Result<Self, AttachError> {
        let mode = match attach {
            Attach::Native => Mode::Native,
            Attach::Generic => Mode::Generic,
        };
        let (problems, strangers, begun) = (BTreeMap::new(), Vec::new(), Begun::default());
        let mut guards = Self { pins, interfaces, mode, problems, strangers, begun };
        match guards.attach_all() {
            Ok(()) => Ok(guards),
            Err(error) => {
                guards.undo();
                Err(error)
            }
        }
    }

    fn attach_all(&mut self) -> Result<(), AttachError> {
        for interface in &self.interfaces {
            if attach::look(&self.pins, interface)?.marked {
                continue;
            }
            match attach::attach(&self.pins, interface, self.mode)? {
                Done::Attached => self.begun.attached.push(interface.clone()),
                Done::Replaced => self.begun.replaced.push(interface.clone()),
            }
        }
        Ok(())
    }

    /// Nothing of the start can fail any more: says what it did, and looks after the rest.
    pub(super) fn settle(&mut self) {
        // Only now: a start that fails says one thing, why.
        for interface in std::mem::take(&mut self.begun).replaced {
            tracing::info!(interface, "replaced the program in place");
        }
        self.strangers = self.others();
        self.renew_others();
        self.tick();
    }

    /// Frees what this start has attached; what was guarded before stays so.
    pub(super) fn undo(&self) {
        for interface in &self.begun.attached {
            if let Err(error) = attach::detach(&self.pins, interface) {
                tracing::error!(%error, "cannot take back what this start attached");
            }
        }
    }

    /// Looks at each interface and does what can be done.
    pub(super) fn tick(&mut self) {
        for interface in self.interfaces.clone() {
            let problem = match attach::look(&self.pins, &interface) {
                Ok(guard) => match plan(&guard, self.mode, &interface) {
                    Plan::Nothing => None,
                    Plan::Tell(problem) => Some(problem),
                    Plan::Attach => self.attach(&interface),
                },
                Err(error) => Some(error.to_string()),
            };
            self.note(&interface, problem);
        }
        self.note_others();
    }

    /// Logs what was attached and detached by hand beside the configuration.
    fn note_others(&mut self) {
        let others = self.others();
        for interface in others.iter().filter(|name| !self.strangers.contains(name)) {
            tracing::warn!(interface, "attached by hand, but not in the configuration");
        }
        for interface in self.strangers.iter().filter(|name| !others.contains(name)) {
            tracing::warn!(interface, "detached by hand; it isn't in the configuration");
        }
        self.strangers = others;
    }

    /// How each stands now, those included that an earlier start left guarded.
    pub(super) fn status(&self) -> Vec<InterfaceStatus> {
        let others = self.others();
        let names = self.interfaces.iter().chain(&others);
        names
            .map(|name| {
                let guard = attach::look(&self.pins, name);
                let problem = self.problem(name, &guard);
                let guard = guard.ok();
                let mode = guard.as_ref().and_then(|guard| guard.mode);
                InterfaceStatus {
                    name: name.clone(),
                    index: guard.and_then(|guard| guard.index),
                    attached: mode.map_or("none", Mode::name).to_owned(),
                    problem,
                }
            })
            .collect()
    }

    /// As of this moment: the last look may have been before whatever happened.
    fn problem(&self, interface: &str, guard: &Result<Guard, AttachError>) -> Option<String> {
        if !self.interfaces.iter().any(|name| name == interface) {
            return Some(format!(
                "guarded, but not in the configuration; `limiter detach {interface}` frees it"
            ));
        }
        let guard = match guard {
            Ok(guard) => guard,
            Err(error) => return Some(error.to_string()),
        };
        match plan(guard, self.mode, interface) {
            Plan::Nothing => None,
            Plan::Tell(problem) => Some(problem),
            Plan::Attach => Some(self.problems.get(interface).cloned().unwrap_or_else(|| {
                "free just now; the daemon attaches it within a second, ask again".to_owned()
            })),
        }
    }

    fn attach(&self, interface: &str) -> Option<String> {
        match attach::attach(&self.pins, interface, self.mode) {
            Ok(_) => {
                tracing::info!(interface, mode = self.mode.name(), "attached again");
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Logs a problem when it begins, changes or ends.
    fn note(&mut self, interface: &str, problem: Option<String>) {
        let last = self.problems.get(interface);
        if last == problem.as_ref() {
            return;
        }
        match problem {
            Some(problem) => {
                tracing::warn!(interface, problem, "not guarded as configured");
                self.problems.insert(interface.to_owned(), problem);
            }
            None => {
                tracing::info!(interface, "guarded");
                self.problems.remove(interface);
            }
        }
    }

    /// Interfaces with links of ours that nobody configured this time.
    fn others(&self) -> Vec<String> {
        let linked = self.pins.linked().into_iter();
        linked.filter(|name| !self.interfaces.contains(name)).collect()
    }

    /// They get the present program too: the last one would go on, with nobody to look after it.
    fn renew_others(&self) {
        for interface in self.others() {
            let attached =
                attach::look(&self.pins, &interface).is_ok_and(|guard| guard.mode.is_some());
            let renewed = attached.then(|| attach::attach(&self.pins, &interface, self.mode));
            tracing::warn!(
                interface,
                renewed = matches!(renewed, Some(Ok(_))),
                "guarded since an earlier start, but not in the configuration; `limiter detach` frees it"
            );
        }
    }
}

fn plan(guard: &Guard, wanted: Mode, interface: &str) -> Plan {
    if guard.marked {
        return Plan::Tell(format!(
            "taken off by `limiter detach`; `{}` puts it back",
            attach::command(interface, wanted)
        ));
    }
    if guard.index.is_none() {
        return Plan::Tell(
            "there is no such interface now; it is guarded again when it comes back".to_owned(),
        );
    }
    match guard.mode {
        None => Plan::Attach,
        Some(mode) if mode == wanted => Plan::Nothing,
        // Not changed by itself: that would leave a gap.
        Some(mode) => Plan::Tell(format!(
            "attached as {}, configured as {}; `limiter detach {interface}`, then `{}` changes it, with a gap of \
             some milliseconds",
            mode.name(),
            wanted.name(),
            attach::command(interface, wanted)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(index: Option<u32>, mode: Option<Mode>, marked: bool) -> Plan {
        plan(&Guard { index, mode, marked }, Mode::Native, "eth0")
    }

    #[test]
    fn an_interface_that_came_back_is_attached_and_one_in_order_left_alone() {
        assert_eq!(planned(Some(4), None, false), Plan::Attach);
        assert_eq!(planned(Some(4), Some(Mode::Native), false), Plan::Nothing);
    }

    #[test]
    fn what_puts_it_back_is_what_works() {
        let marked = Guard { index: Some(4), mode: None, marked: true };
        let told = |wanted| match plan(&marked, wanted, "lo") {
            Plan::Tell(problem) => problem,
            other => panic!("{other:?}"),
        };
        assert!(told(Mode::Native).contains("`limiter attach lo` puts it back"));
        assert!(told(Mode::Generic).contains("`limiter attach lo --generic` puts it back"));
    }

    #[test]
    fn a_reason_is_known_the_moment_it_is_asked_for() {
        let guards = Guards {
            pins: Pins::new("/nowhere"),
            interfaces: vec!["eth0".to_owned()],
            mode: Mode::Native,
            problems: BTreeMap::new(),
            strangers: Vec::new(),
            begun: Begun::default(),
        };
        let problem =
            |marked| guards.problem("eth0", &Ok(Guard { index: Some(4), mode: None, marked }));
        assert!(problem(true).unwrap().contains("taken off by `limiter detach`"));
        assert!(problem(false).unwrap().contains("within a second"));
    }

    #[test]
    fn neither_a_detached_nor_a_missing_nor_a_generic_one_is_touched() {
        for guard in [
            planned(Some(4), None, true),
            planned(None, None, false),
            planned(Some(4), Some(Mode::Generic), false),
        ] {
            assert!(matches!(guard, Plan::Tell(_)), "{guard:?}");
        }
    }
}
