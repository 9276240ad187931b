//! How much of the kernel's 512 bytes of BPF stack a loaded program needs, reckoned as the verifier does:
//! what each function uses, rounded up, summed over the deepest chain of calls.

use std::os::fd::AsFd;

use anyhow::{Context, Result};
use limiter_tests::bpf;

/// To this the oldest kernel rounds up each function's stack.
const STEP: u32 = 32;

/// Bytes of stack in the deepest chain of calls.
pub(crate) fn bytes(program: impl AsFd) -> Result<u32> {
    let raw = bpf::instructions(program).context("reading the program back")?;
    let code: Vec<Instruction> = raw.into_iter().map(Instruction::from).collect();
    Ok(deepest(&code, 0))
}

/// One instruction's fields.
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    destination: u8,
    source: u8,
    offset: i16,
    immediate: i32,
}

impl From<[u8; 8]> for Instruction {
    fn from([code, registers, o0, o1, i0, i1, i2, i3]: [u8; 8]) -> Self {
        Self {
            code,
            destination: registers & 15,
            source: registers >> 4,
            offset: i16::from_le_bytes([o0, o1]),
            immediate: i32::from_le_bytes([i0, i1, i2, i3]),
        }
    }
}

/// The frame pointer.
const FRAME: u8 = 10;
const LOAD: u8 = 1;
const STORE: u8 = 2;
const STORE_REGISTER: u8 = 3;
const MOVE: u8 = 0xbf;
const ADD: u8 = 0x07;
const CALL: u8 = 0x85;
const TO_FUNCTION: u8 = 1;

impl Instruction {
    /// How far below the frame pointer it reaches; `next` may add to a copy of the pointer.
    fn reach(self, next: Option<&Self>) -> u32 {
        let base = match self.code & 7 {
            LOAD => self.source,
            STORE | STORE_REGISTER => self.destination,
            _ => {
                let copied = self.code == MOVE && self.source == FRAME;
                let added = next
                    .filter(|it| copied && it.code == ADD && it.destination == self.destination);
                return added.map_or(0, |it| it.immediate.min(0).unsigned_abs());
            }
        };
        if base == FRAME { u32::from(self.offset.min(0).unsigned_abs()) } else { 0 }
    }

    /// Where the function begins that it calls, being at this place.
    fn callee(self, place: usize) -> Option<usize> {
        let calls = self.code == CALL && self.source == TO_FUNCTION;
        calls.then(|| place.checked_add_signed(isize::from(self.offset) + 1))?
    }
}

/// Of the function that begins here.
fn deepest(code: &[Instruction], begin: usize) -> u32 {
    let callees = code.iter().enumerate().filter_map(|(place, it)| it.callee(place));
    let end = callees.filter(|callee| *callee > begin).min().unwrap_or(code.len());
    let (mut own, mut below) = (1, 0);
    for place in begin..end {
        own = own.max(code[place].reach(code.get(place + 1)));
        if let Some(callee) = code[place].callee(place) {
            below = below.max(deepest(code, callee));
        }
    }
    own.next_multiple_of(STEP) + below
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

    fn depth(code: &[[u8; 8]]) -> u32 {
        let code: Vec<Instruction> = code.iter().copied().map(Instruction::from).collect();
        deepest(&code, 0)
    }

    #[test]
    fn a_function_without_a_stack_takes_one_step() {
        assert_eq!(depth(&[EXIT]), 32);
    }

    #[test]
    fn stores_and_copies_of_the_frame_pointer_count() {
        // *(u64 *)(r10 - 40) = r1
        assert_eq!(depth(&[[0x7b, 0x1a, 0xd8, 0xff, 0, 0, 0, 0], EXIT]), 64);
        // r2 = r10; r2 += -72
        let address =
            [[0xbf, 0xa2, 0, 0, 0, 0, 0, 0], [0x07, 2, 0, 0, 0xb8, 0xff, 0xff, 0xff], EXIT];
        assert_eq!(depth(&address), 96);
    }

    #[test]
    fn only_the_deepest_chain_counts() {
        let call = |offset: u8| [0x85, 0x10, offset, 0, 1, 0, 0, 0];
        let store = [0x7b, 0x1a, 0xc0, 0xff, 0, 0, 0, 0]; // 64 bytes
        // 0: calls 3 and 4; 3: nothing; 4: 64 bytes.
        assert_eq!(depth(&[call(2), call(2), EXIT, EXIT, store, EXIT]), 32 + 64);
    }
}
