//! How a packet is judged: from what the parser noted to the tokens of every pool. The kernel program is
//! this code over its maps; what it needs of them is [`Maps`].

pub mod facts;
mod fill;
pub mod level;
mod notes;
mod open;
pub mod pool;

pub use fill::fill;
pub use notes::{Note, Notes};
pub use open::{Open, ask};

use crate::border::{Drawn, Subject};
use crate::bucket::{Bucket, Room};
use crate::counters::RuleCount;
use crate::key::Level;
use crate::layout::{AddressEntry, Meta, PolicyEntry, RuleEntry, RuleSet};
use crate::take::Step;
use crate::ticket::Ticket;
use crate::want::Want;

/// The maps, as far as judging needs them; and the steps that the kernel puts into functions of their own,
/// which its verifier then checks once instead of once per rule and level.
pub trait Maps: Copy {
    /// A bucket of the table.
    type Bucket: Bucket;

    /// This CPU's notes.
    fn notes(self) -> Option<&'static Notes>;
    /// What is true for all policies.
    fn meta(self) -> Option<&'static Meta>;
    /// The rules that judge a subject.
    fn set(self, subject: Subject) -> Option<&'static RuleSet>;
    /// The policy in this half (the lowest bit counts).
    fn policy(self, generation: u32) -> Option<&'static PolicyEntry>;
    /// Its rule at a place.
    fn rule(self, generation: u32, place: u32) -> Option<&'static RuleEntry>;
    /// This CPU's ticket with a number.
    fn ticket(self, number: u32) -> Option<&'static mut Ticket>;
    /// Tickets for sources, less one.
    fn ticket_mask(self) -> u32;
    /// A bucket by its number.
    fn bucket(self, number: u32) -> Option<Self::Bucket>;
    /// Buckets, less one.
    fn bucket_mask(self) -> u32;
    /// Begins to fetch a bucket; what follows runs while the memory is at it.
    fn touch(self, bucket: u32);
    /// See [`crate::bucket::Ask::share`].
    fn share(self) -> u32;
    /// Writes down whose word lies in a slot.
    fn set_address(self, bucket: u32, slot: u32, entry: AddressEntry);
    /// Counts a packet of this length in a row of a rule.
    fn count(self, row: u32, what: RuleCount, length: u32);

    /// [`pool::look`].
    fn look(self, name: u32, want: Want) -> Room;
    /// [`level::draw`].
    fn draw_level(self, level: Level, want: Want) -> Drawn;
    /// [`pool::draw`].
    fn draw(self, name: u32, want: Want) -> Step;
    /// [`pool::find`].
    fn find(self, name: u32);
    /// [`pool::give_back`] for each rule that was drawn from; the name lacks the place.
    fn give_back(self, drawn: Drawn, name: u32, want: Want);
}
