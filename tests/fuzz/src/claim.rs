//! Claims, looks, refunds, changed limits and clock steps by sixteen keys of two rules over one bucket,
//! as the bytes say, held against a naive ledger.
//!
//! The first four bytes choose window and limit of the two rules, the fifth how long before the ends in
//! words wrap it begins. Then each pair of bytes is a step: see `Step` below.

mod ledger;
mod world;

use limiter_common::bucket::UNLIMITED;
use limiter_common::clock::WindowLength;

use world::World;

/// Which key: the low four bits of a step's first byte. Keys with even numbers are the first rule's.
pub(crate) const KEYS: u8 = 16;
const WINDOWS: [u32; 8] = [1, 2, 7, 10, 100, 600, 3_000, 36_000];

/// One step: three bits of the first byte choose which, the second byte is its argument.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// 0, 1, 2: this cost (1 … 64), by a CPU whose clock is a tick late if the highest bit is set; four
    /// times as much where plenty is left, if the next bit is.
    Claim { key: u8, cost: u32, late: bool, more: u32 },
    /// 3: whether a claim would be granted.
    Look { key: u8, cost: u32, late: bool, more: u32 },
    /// 4: the key's last grant goes back.
    Refund { key: u8 },
    /// 5: so many ticks pass. 6: 64 times as many.
    Wait { ticks: u64 },
    /// 7: the key's rule gets another limit.
    Limit { key: u8, limit: u32 },
}

impl Step {
    fn of(what: u8, how: u8) -> Self {
        let (key, cost, late) = (what % KEYS, u32::from(how % 64) + 1, how >= 0x80);
        let more = if how & 0x40 != 0 { cost * 4 } else { cost };
        match what >> 4 & 7 {
            0..=2 => Self::Claim { key, cost, late, more },
            3 => Self::Look { key, cost, late, more },
            4 => Self::Refund { key },
            5 => Self::Wait { ticks: u64::from(how) },
            6 => Self::Wait { ticks: u64::from(how) * 64 },
            _ => Self::Limit { key, limit: limit(how) },
        }
    }
}

/// Takes the steps.
///
/// # Panics
/// If the bucket and the ledger differ.
pub fn run(input: &[u8]) {
    let Some(([window, limit, other_window, other_limit, early], steps)) =
        input.split_first_chunk::<5>()
    else {
        return;
    };
    let rules = [(window, limit), (other_window, other_limit)];
    let rules = rules.map(|(window, many)| (length(*window), self::limit(*many)));
    let mut world = World::new(rules, u64::from(*early));
    for (number, step) in steps.as_chunks::<2>().0.iter().enumerate() {
        world.take(number, Step::of(step[0], step[1]));
    }
}

fn length(choice: u8) -> WindowLength {
    let ticks = WINDOWS[usize::from(choice) % WINDOWS.len()];
    WindowLength::from_ticks(ticks).unwrap_or(WindowLength::MIN)
}

fn limit(number: u8) -> u32 {
    if number == u8::MAX { UNLIMITED } else { u32::from(number) }
}
