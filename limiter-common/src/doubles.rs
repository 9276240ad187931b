//! What stands for a bucket and for a frame in tests and under a fuzzer; in no product.

use core::cell::{Cell, RefCell};

use crate::bucket::Bucket;
use crate::frame::Frame;
use crate::packet::{Kind, Parsed};
use crate::word::Word;

const SLOTS: usize = 8;

/// Eight words and one thread.
pub struct Plain(pub RefCell<[Word; SLOTS]>);

impl Default for Plain {
    fn default() -> Self {
        Self(RefCell::new([Word::EMPTY; SLOTS]))
    }
}

impl Bucket for Plain {
    fn load(&self, slot: u32) -> Word {
        self.0.borrow()[slot as usize]
    }

    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        let word = &mut self.0.borrow_mut()[slot as usize];
        let same = *word == old;
        if same {
            *word = new;
        }
        same
    }
}

/// A frame that notes how far the parser reaches and how often it reads.
pub struct Recorder<'a> {
    bytes: &'a [u8],
    /// The largest offset.
    pub farthest: Cell<usize>,
    /// How many reads.
    pub reads: Cell<usize>,
}

impl<'a> Recorder<'a> {
    /// Nobody has read these bytes yet.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, farthest: Cell::new(0), reads: Cell::new(0) }
    }
}

impl Frame for Recorder<'_> {
    type Report = Parsed;

    fn report(&self, parsed: Parsed) -> Parsed {
        parsed
    }

    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.farthest.set(self.farthest.get().max(offset));
        self.reads.set(self.reads.get().saturating_add(1));
        self.bytes.read(offset)
    }
}

/// Nobody may learn a port or a kind from a frame whose headers aren't whole.
#[must_use]
pub fn forges_nothing(parsed: &Parsed) -> bool {
    match parsed {
        Parsed::Fault(_, Some(packet)) => {
            packet.destination_port.is_none() && packet.kind == Kind::Other
        }
        _ => true,
    }
}
