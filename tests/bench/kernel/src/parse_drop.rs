//! The product without its state: its own parser, classifier, clock and counters, in the order of
//! `limiter-ebpf/src/program.rs`. The only file here that knows how the product's stages are called.

use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;
use limiter_common::border::Subject;
use limiter_common::key::Source;
use limiter_common::layout::Bypass;
use limiter_common::verdict::Exit;

use crate::facts::{self, Facts};
use crate::{clock, frame, maps, verdict};

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
pub fn run(context: &XdpContext, judge: impl FnOnce(&Facts, u64) -> Exit) -> u32 {
    let length = frame::length(context);
    let bypass = maps::bypass();
    let exit = match bypass {
        Bypass::Pass => Exit::BypassPass,
        Bypass::Off | Bypass::Shadow => {
            let mut facts = Facts::NONE;
            match facts::find_out(context.ctx, length, &raw mut facts) {
                facts::TO_JUDGE => judge(&facts, clock::now()),
                exit => Exit::from_number(exit),
            }
        }
    };
    verdict::finish(exit, bypass, length)
}

/// The rules behind the class, as the product looks them up.
#[inline(always)]
pub fn judged(facts: &Facts) -> Judged {
    let subject = Subject(facts.subject);
    let rules = match maps::set(subject) {
        Some(set) => set.enforced_bits(),
        None => 0,
    };
    Judged { source: Source::from_bits(subject.family(), facts.source), rules }
}
