//! The product without its state: its own parser, classifier, clock and counters, in the order of
//! `limiter-ebpf/src/program.rs`. The only file here that knows how the product's stages are called.

use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;
use limiter_common::border::Subject;
use limiter_common::judge::facts::TO_JUDGE;
use limiter_common::judge::{Maps, Notes};
use limiter_common::key::Source;
use limiter_common::layout::Bypass;
use limiter_common::verdict::Exit;

use crate::maps::Kernel;
use crate::{clock, facts, frame, maps, verdict};

/// Every packet that rules apply to is counted as refused, and dropped.
#[xdp(frags)]
pub fn parse_drop(context: XdpContext) -> u32 {
    run(&context, |_, now| if now == 0 { Exit::Contended } else { Exit::Refused })
}

/// A packet as the yardsticks want it.
pub struct Judged {
    pub source: Source,
    /// The rules that apply, as bits by their places.
    pub rules: u32,
}

/// The product's stages with `judge` in the place of its own.
#[inline(always)]
pub fn run(context: &XdpContext, judge: impl FnOnce(&Notes, u64) -> Exit) -> u32 {
    let length = frame::length(context);
    let bypass = maps::bypass();
    let exit = match (Kernel.meta(), Kernel.notes()) {
        _ if bypass == Bypass::Pass as u32 => Exit::BypassPass,
        (Some(meta), Some(notes)) => {
            notes.bypass.set(bypass);
            let exit = match facts::find_out(context, meta, length, notes) {
                TO_JUDGE => judge(notes, clock::now(meta)),
                exit => Exit::from_number(exit),
            };
            verdict::bypassed(exit, notes)
        }
        _ => Exit::NoPolicy,
    };
    verdict::finish(exit, length)
}

/// The rules behind the class, as the product looks them up.
#[inline(always)]
pub fn judged(notes: &Notes) -> Judged {
    let subject = Subject(notes.subject.get());
    let rules = match Kernel.set(subject) {
        Some(set) => set.enforced_bits(),
        None => 0,
    };
    Judged { source: Source::from_bits(subject.family(), notes.source.get()), rules }
}
