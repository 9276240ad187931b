//! Which rules can judge a packet: three look-ups, whatever the number of rules.

use core::arch::asm;

use limiter_common::border::Subject;
use limiter_common::key::Family;
use limiter_common::layout::{Classifier, Meta, OnFault, PolicyEntry};

use limiter_common::judge::Maps;

use crate::maps::{self, Kernel};

/// The policy that judges this packet. The generation is read once per packet, so that no packet
/// sees two policies.
pub struct Policy {
    generation: u32,
    entry: &'static PolicyEntry,
}

impl Policy {
    /// `None` before the first policy.
    #[inline(always)]
    pub fn active(meta: &Meta) -> Option<Self> {
        // SAFETY: the daemon changes the field while we run: one volatile read decides.
        let generation = unsafe { core::ptr::read_volatile(&raw const meta.generation) };
        if generation == 0 {
            return None;
        }
        Some(Self { generation, entry: Kernel.policy(generation)? })
    }

    /// What a packet of this class and family is to the rest of the program.
    #[inline(always)]
    pub fn subject(&self, class: u32, family: Family) -> Subject {
        Subject::new(class, self.generation, family)
    }

    #[inline(always)]
    pub fn on_fault(&self, fault: u32) -> OnFault {
        self.entry.on_fault_number(fault)
    }
}

/// The class of a packet; 0 if no rule applies.
#[inline(always)]
pub fn class(policy: &Policy, protocol: u32, kind: u32, port: Option<u16>) -> u32 {
    let Some(tables) = maps::classifier(policy.generation) else {
        return 0;
    };
    let column = tables.protocol[protocol as usize & 511];
    let row = match port {
        Some(port) => tables.port[port as usize],
        None => Classifier::NO_PORT,
    };
    let cell = Classifier::cell(column, kind, row);
    tables.class[masked(cell) & (Classifier::CELLS - 1)] as u32
}

/// The same number, below [`Classifier::CELLS`]. The compiler knows that it is anyway and drops a mask;
/// Linux 6.1 can't follow that and refuses the access.
#[inline(always)]
fn masked(mut cell: usize) -> usize {
    // SAFETY: one instruction on one register.
    unsafe {
        asm!(
            "{cell} &= {mask}",
            cell = inout(reg) cell,
            mask = const Classifier::CELLS - 1,
            options(pure, nomem, nostack),
        );
    }
    cell
}
