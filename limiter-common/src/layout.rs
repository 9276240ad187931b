//! What lies in the BPF maps. Kernel and user space share these types byte for byte; a change of any
//! of them is a new [`VERSION`].

use crate::bucket::UNLIMITED;
use crate::clock::{NANOS_PER_TICK, WindowLength};
use crate::hash::Seed;
use crate::key::{Key, Level};
use crate::packet::{Fault, Kind};
use crate::quantum::Quantum;

/// Number of this layout. The daemon refuses pinned maps of another one.
pub const VERSION: u32 = 2;

/// Rules in a policy at most.
pub const MAX_RULES: u32 = 32;
/// Sets of rules that some packet can match, at most; class 0 is the empty set.
pub const MAX_CLASSES: u32 = 256;
/// Sets of rules that are judged together: the classes, and each rule by itself (in shadow it is).
pub const MAX_SETS: u32 = 512;
/// Policies in the maps: the active one and the idle one.
pub const GENERATIONS: u32 = 2;
/// Counter rows for rules: twice [`MAX_RULES`], so that a policy can replace all rules of the last
/// one and none of their counts gets a second meaning.
pub const RULE_ROWS: u32 = 64;
/// Slots in a bucket.
pub const SLOTS: u32 = 8;
/// Buckets in a table if nothing else is configured: 8 MiB of words, 16 MiB of addresses; enough for
/// 262,144 keys at a quarter full.
pub const DEFAULT_BUCKETS: u32 = 1 << 17;

/// Tickets in one entry of map `TICKETS`: a page. (With an entry for each, a packet would fetch one line
/// more, that with the pointer to it.)
pub const TICKETS_PER_PAGE: u32 = 128;
/// Each CPU's tickets for sources if nothing else is configured: 512 KiB,
/// which a second-level cache holds. (A ticket that must be fetched from memory costs as much as the word.)
pub const DEFAULT_TICKETS: u32 = 1 << 14;
/// Each CPU's tickets for prefixes: 128 KiB. Those for totals have a place for each set of rules.
pub const PREFIX_TICKETS: u32 = 1 << 12;
/// Pages before those of sources: totals, then prefixes.
pub const COARSE_PAGES: u32 = (MAX_SETS + PREFIX_TICKETS) / TICKETS_PER_PAGE;

/// No limit at this level: it isn't evaluated.
pub const ABSENT: u32 = u32::MAX - 1;

/// Map `META`, one entry, mmapable: what is true for the table and all policies.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// [`VERSION`] of whoever made the maps.
    pub layout: u32,
    /// Counts policy changes; its lowest bit is the active generation. 0: no policy yet.
    pub generation: u32,
    /// Made once, with the maps.
    pub seed: [u64; 2],
    /// [`crate::hash::KeyHash`] of [`Key::TOTAL`] under that seed.
    pub total: u64,
    /// Nanoseconds to add to the monotonic clock to get Unix time.
    pub wall_offset: u64,
    /// Unix time of the daemon's last sign of life, in nanoseconds.
    pub heartbeat: u64,
    /// The next rule id; ids are never given twice while the maps live.
    pub next_rule_id: u32,
    /// Zero.
    pub reserved: u32,
}

impl Meta {
    /// The seed for [`crate::hash::KeyHash`].
    #[inline(always)]
    #[must_use]
    pub const fn seed(&self) -> Seed {
        Seed(self.seed)
    }
}

/// What the policy wants done with a frame whose headers can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OnFault {
    /// By the rules that name no ports, if an address was read; else it passes.
    Limit = 0,
    /// It passes.
    Pass = 1,
    /// It is refused.
    Drop = 2,
}

/// Map `POLICY`, one entry per generation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyEntry {
    /// The policy's version, for people.
    pub version: u64,
    /// The longest life of a word under this policy: [`crate::bucket::life`], in ticks.
    pub span: u32,
    /// [`OnFault`] by the number of the [`Fault`].
    on_fault: [u8; 4],
}

impl PolicyEntry {
    /// An entry for this version, longest life in ticks, and answer to each fault.
    #[must_use]
    pub fn new(version: u64, span: u32, on_fault: impl Fn(Fault) -> OnFault) -> Self {
        Self { version, span, on_fault: Fault::ALL.map(|fault| on_fault(fault) as u8) }
    }

    /// What to do with this fault.
    #[must_use]
    pub const fn on_fault(&self, fault: Fault) -> OnFault {
        self.on_fault_number(fault as u32)
    }

    /// The same by the lowest two bits of a number.
    #[inline(always)]
    #[must_use]
    pub const fn on_fault_number(&self, fault: u32) -> OnFault {
        match self.on_fault[fault as usize & 3] {
            1 => OnFault::Pass,
            2 => OnFault::Drop,
            _ => OnFault::Limit,
        }
    }
}

/// Map `CLASSIFIER`, one entry per generation: from protocol, kind and port to a class number in
/// three look-ups, whatever the number of rules.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Classifier {
    /// By [`crate::packet::Protocol::index`] (257 are used): a column below [`Self::PROTOCOLS`].
    pub protocol: [u8; 512],
    /// By destination port: a row; 0 is kept for "no port".
    pub port: [u8; 65_536],
    /// By [`Self::cell`]: the class.
    pub class: [u8; Self::CELLS],
}

impl Classifier {
    /// Protocols that rules can tell apart, at most.
    pub const PROTOCOLS: u32 = 64;
    /// Groups of ports that rules can tell apart, at most, "no port" included.
    pub const PORTS: u32 = 256;
    /// Entries of `class`.
    pub const CELLS: usize = (Self::PROTOCOLS * Kind::ROOM * Self::PORTS) as usize;
    /// The row for packets without a port.
    pub const NO_PORT: u8 = 0;

    /// The place in `class` for a column, a kind and a row.
    #[inline(always)]
    #[must_use]
    pub const fn cell(protocol: u8, kind: u32, port: u8) -> usize {
        ((protocol as usize & 63) << 11) | ((kind as usize & 7) << 8) | port as usize
    }
}

/// Map `SETS`, [`MAX_SETS`] entries per generation: rules that are judged together. First the classes, by
/// number; from [`MAX_CLASSES`] on each rule by itself, by its place in the policy.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    life: u64,
    window: u32,
    enforced: u8,
    shadow: u8,
    bytes: u8,
    levels: u8,
    /// The first two groups of its rules, for a look ahead.
    groups: [u8; 2],
    reserved: [u8; 6],
    /// Places in the policy, in its order: those enforced, then those in shadow.
    places: [u8; MAX_RULES as usize],
    /// Their counter rows.
    rows: [u8; MAX_RULES as usize],
}

impl RuleSet {
    /// No rule.
    pub const EMPTY: Self = Self {
        life: 0,
        window: 0,
        enforced: 0,
        shadow: 0,
        bytes: 0,
        levels: 0,
        groups: [0; 2],
        reserved: [0; 6],
        places: [0; MAX_RULES as usize],
        rows: [0; MAX_RULES as usize],
    };

    /// The rules with these places (as bits) out of all rules of a policy.
    #[must_use]
    pub fn new(enforce: u32, shadow: u32, rules: &[RuleEntry]) -> Self {
        let mut set = Self::EMPTY;
        set.enforced = set.list(0, enforce, rules);
        set.shadow = set.list(set.enforced, shadow, rules);
        set.set_groups(enforce, rules);
        for (place, rule) in (0_u32..).zip(rules) {
            if enforce >> place & 1 != 0 {
                set.admit(rule);
            }
        }
        set
    }

    /// Groups of the first enforced rule and of the first that lies elsewhere.
    fn set_groups(&mut self, enforce: u32, rules: &[RuleEntry]) {
        let chosen = (0_u32..).zip(rules).filter(|(place, _)| enforce >> place & 1 != 0);
        #[expect(clippy::cast_possible_truncation, reason = "groups are below 32")]
        let mut groups = chosen.map(|(_, rule)| rule.group() as u8);
        if let Some(first) = groups.next() {
            self.groups = [first, groups.find(|group| *group != first).unwrap_or(first)];
        }
    }

    fn list(&mut self, from: u8, mask: u32, rules: &[RuleEntry]) -> u8 {
        let chosen = (0_u8..).zip(rules).filter(|(place, _)| mask >> place & 1 != 0);
        let free = self.places.iter_mut().zip(&mut self.rows).skip(from as usize);
        let mut count = 0_u8;
        for ((to_place, to_row), (place, rule)) in free.zip(chosen) {
            #[expect(clippy::cast_possible_truncation, reason = "rows are below 64")]
            let row = rule.row() as u8;
            (*to_place, *to_row) = (place, row);
            count = count.saturating_add(1);
        }
        count
    }

    fn admit(&mut self, rule: &RuleEntry) {
        let window = rule.window();
        self.window = gcd(self.window, window.ticks());
        let life = (crate::bucket::life(window) as u64).saturating_mul(NANOS_PER_TICK);
        self.life = self.life.max(life);
        for level in Level::ALL {
            if rule.limit(level).is_some() {
                self.levels |= 1 << level as u8;
            }
        }
        if let Unit::Bytes(quantum) = rule.unit() {
            #[expect(clippy::cast_possible_truncation, reason = "at most 6")]
            let finest = (quantum.shift() as u8).saturating_add(1);
            self.bytes = if self.bytes == 0 { finest } else { self.bytes.min(finest) };
        }
    }

    /// How many rules refuse. At most [`MAX_RULES`].
    #[inline(always)]
    #[must_use]
    pub const fn enforced(&self) -> u32 {
        self.enforced as u32
    }

    /// How many rules only say what they would refuse.
    #[inline(always)]
    #[must_use]
    pub const fn shadow(&self) -> u32 {
        self.shadow as u32
    }

    /// The place in the policy of the `i`-th rule of the set, those in shadow last.
    #[inline(always)]
    #[must_use]
    pub const fn place(&self, i: u32) -> u32 {
        self.places[(i & (MAX_RULES - 1)) as usize] as u32 & (MAX_RULES - 1)
    }

    /// Its counter row.
    #[inline(always)]
    #[must_use]
    pub const fn row(&self, i: u32) -> u32 {
        self.rows[(i & (MAX_RULES - 1)) as usize] as u32
    }

    /// Enforced rules as bits by their places.
    #[must_use]
    pub fn enforced_bits(&self) -> u32 {
        (0..self.enforced()).fold(0, |bits, i| bits | 1 << self.place(i))
    }

    /// Rules in shadow as bits by their places.
    #[must_use]
    pub fn shadow_bits(&self) -> u32 {
        let end = self.enforced().saturating_add(self.shadow());
        (self.enforced()..end).fold(0, |bits, i| bits | 1 << self.place(i))
    }

    /// In which of a key's buckets the first rules' words are.
    #[inline(always)]
    #[must_use]
    pub const fn first_groups(&self) -> (u32, u32) {
        (self.groups[0] as u32, self.groups[1] as u32)
    }

    /// Whether some enforced rule limits the level.
    #[inline(always)]
    #[must_use]
    pub const fn limits(&self, level: Level) -> bool {
        self.levels >> level as u8 & 1 != 0
    }

    /// A window in which no rule's window ends but at its end: the greatest common divisor of all.
    #[inline(always)]
    #[must_use]
    pub const fn window(&self) -> WindowLength {
        match WindowLength::from_ticks(self.window) {
            Some(window) => window,
            None => WindowLength::MIN,
        }
    }

    /// The longest that a ticket for it may live, in nanoseconds.
    #[inline(always)]
    #[must_use]
    pub const fn life(&self) -> u64 {
        self.life
    }

    /// log2 of the finest quantum of its rules over bytes; `None` if it has no such rule.
    #[inline(always)]
    #[must_use]
    pub const fn byte_shift(&self) -> Option<u32> {
        match self.bytes {
            0 => None,
            shift => Some((shift as u32).wrapping_sub(1)),
        }
    }
}

fn gcd(mut one: u32, mut other: u32) -> u32 {
    while let Some(rest) = one.checked_rem(other) {
        (one, other) = (other, rest);
    }
    one
}

/// Map `RULES`, [`MAX_RULES`] entries per generation, in the policy's order.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleEntry {
    id: u32,
    row: u32,
    window: u32,
    limit: [u32; Level::COUNT],
    group: u32,
    shift: u32,
    bytes: u32,
}

/// What a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each packet is 1.
    Packets,
    /// Each packet is its frame's length in bytes, Ethernet header included, in these quanta.
    Bytes(Quantum),
}

impl RuleEntry {
    /// A rule with this identity, counter row (below [`RULE_ROWS`]), window, unit and bucket group,
    /// that limits nothing yet.
    #[must_use]
    pub const fn new(id: u32, row: u32, window: WindowLength, unit: Unit, group: u32) -> Self {
        let (shift, bytes) = match unit {
            Unit::Packets => (0, 0),
            Unit::Bytes(quantum) => (quantum.shift(), 1),
        };
        Self { id, row, window: window.ticks(), limit: [ABSENT; Level::COUNT], group, shift, bytes }
    }

    /// The same rule with a limit at a level: quanta per window up to
    /// [`crate::word::MAX_VALUE`], or [`UNLIMITED`].
    #[must_use]
    pub const fn with_limit(mut self, level: Level, limit: u32) -> Self {
        self.limit[level as usize] = limit;
        self
    }

    /// Identity: goes into fingerprints.
    #[inline(always)]
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Row of counters, below [`RULE_ROWS`].
    #[inline(always)]
    #[must_use]
    pub const fn row(&self) -> u32 {
        self.row
    }

    /// The window; a length out of range can't come from [`RuleEntry::new`] and reads as 1 h.
    #[inline(always)]
    #[must_use]
    pub const fn window(&self) -> WindowLength {
        match WindowLength::from_ticks(self.window) {
            Some(window) => window,
            None => WindowLength::MAX,
        }
    }

    /// Quanta per window, `None` where the level isn't evaluated. May be [`UNLIMITED`].
    #[inline(always)]
    #[must_use]
    pub const fn limit(&self, level: Level) -> Option<u32> {
        let limit = match level {
            Level::Total => self.limit[0],
            Level::Prefix => self.limit[1],
            Level::Source => self.limit[2],
        };
        if limit == ABSENT { None } else { Some(limit) }
    }

    /// Which of a key's buckets.
    #[inline(always)]
    #[must_use]
    pub const fn group(&self) -> u32 {
        self.group
    }

    /// What is counted.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        match (self.bytes, Quantum::from_shift(self.shift)) {
            (1, Some(quantum)) => Unit::Bytes(quantum),
            _ => Unit::Packets,
        }
    }

    /// What so many packets and bytes cost, in quanta, rounded up.
    #[inline(always)]
    #[must_use]
    pub const fn cost(&self, (packets, bytes): (u32, u32)) -> u32 {
        if self.bytes == 1 { Quantum::ceil(self.shift, bytes) } else { packets }
    }

    /// From how much use in a window on a key is worth its address, in quanta: 8 packets or 8 KiB.
    #[inline(always)]
    #[must_use]
    pub const fn known_from(&self) -> u32 {
        if self.bytes == 1 { 8_192 >> (self.shift & 31) } else { 8 }
    }

    /// Whether packets are counted: once one is refused, all are until the window ends.
    #[inline(always)]
    #[must_use]
    pub const fn counts_packets(&self) -> bool {
        self.bytes != 1
    }
}

/// One slot of map `ADDRESSES`: whose word lies in the same place of the table. Written once a key
/// is worth it ([`RuleEntry::known_from`], when it gets hot, when it is refused), without a lock, so it is believed only if it hashes back to the word it lies beside.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressEntry {
    bits: u64,
    rule: u32,
    tag: u32,
}

impl AddressEntry {
    /// The entry for a key of the rule with this id.
    #[inline(always)]
    #[must_use]
    pub const fn new(key: Key, rule: u32) -> Self {
        Self { bits: key.bits(), rule, tag: key.tag() as u32 }
    }

    /// The key; `None` if nothing legible lies here.
    #[must_use]
    pub const fn key(&self) -> Option<Key> {
        #[expect(clippy::cast_possible_truncation, reason = "checked by the comparison")]
        if self.tag <= u8::MAX as u32 { Key::from_parts(self.tag as u8, self.bits) } else { None }
    }

    /// The rule's id.
    #[must_use]
    pub const fn rule(&self) -> u32 {
        self.rule
    }
}

/// Longest rule name, in bytes.
pub const MAX_NAME: usize = 48;

/// Map `REGISTRY`, [`RULE_ROWS`] entries, by counter row: which rule the row and the id belong to. Only
/// the daemon reads and writes it; it lets a restarted daemon go on with the same ids and counters.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryEntry {
    /// UTF-8, padded with zeros; all zeros: the row is free.
    pub name: [u8; MAX_NAME],
    /// Unix time in nanoseconds when the rule left the policy, 0 while it is in it.
    pub retired: u64,
    /// The id in words' fingerprints.
    pub id: u32,
    /// Window in ticks, part of what the id stands for.
    pub window: u32,
    /// 0 packets, 1 bytes; part of what the id stands for.
    pub bytes: u32,
    /// log2 of the quantum; part of what the id stands for.
    pub shift: u32,
}

/// Map `BYPASS`, one entry: the operator's way out. The daemon only reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Bypass {
    /// The policy holds.
    Off = 0,
    /// Everything is judged and counted, nothing is refused.
    Shadow = 1,
    /// Nothing is looked at.
    Pass = 2,
}

impl Bypass {
    /// From the map's number; unknown ones are [`Bypass::Off`].
    #[inline(always)]
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Shadow,
            2 => Self::Pass,
            _ => Self::Off,
        }
    }
}

/// Names of the maps in the kernel object, as pinned.
pub mod map {
    #![expect(missing_docs, reason = "each is documented at its type")]
    pub const META: &str = "META";
    pub const POLICY: &str = "POLICY";
    pub const CLASSIFIER: &str = "CLASSIFIER";
    pub const SETS: &str = "SETS";
    pub const RULES: &str = "RULES";
    pub const TABLE: &str = "TABLE";
    pub const ADDRESSES: &str = "ADDRESSES";
    pub const COUNTERS: &str = "COUNTERS";
    pub const REGISTRY: &str = "REGISTRY";
    pub const BYPASS: &str = "BYPASS";
    pub const TICKETS: &str = "TICKETS";
    pub const TEST_CLOCK: &str = "TEST_CLOCK";
    /// Those that outlive the daemon.
    pub const PINNED: [&str; 10] =
        [META, POLICY, CLASSIFIER, SETS, RULES, TABLE, ADDRESSES, COUNTERS, REGISTRY, BYPASS];
}

/// The program's name in the kernel object.
pub const PROGRAM: &str = "limiter";
/// Load-time constant (u32): number of buckets minus one.
pub const BUCKET_MASK: &str = "BUCKET_MASK";
/// Load-time constant (u32): number of tickets minus one.
pub const TICKET_MASK: &str = "TICKET_MASK";
/// Load-time constant (u32): log2 of the parts of a pool of which one may be claimed ahead; 8 for each CPU.
pub const SHARE: &str = "SHARE";
/// Load-time constant (u32): 1 takes the time from map `TEST_CLOCK` (Unix nanoseconds).
pub const USE_TEST_CLOCK: &str = "USE_TEST_CLOCK";

const _: () = {
    assert!(size_of::<Meta>() == 56);
    assert!(size_of::<PolicyEntry>() == 16);
    assert!(size_of::<Classifier>() == 512 + 65_536 + 131_072);
    assert!(size_of::<RuleSet>() == 88);
    assert!(size_of::<RuleEntry>() == 36);
    assert!(size_of::<AddressEntry>() == 16);
    assert!(size_of::<RegistryEntry>() == 72);
    assert!(UNLIMITED != ABSENT);
    assert!(Classifier::CELLS == 1 << 17);
};

#[cfg(feature = "user")]
mod pod {
    #![expect(
        clippy::undocumented_unsafe_blocks,
        reason = "each type is #[repr(C)], without padding, of integers only, as the size asserts show"
    )]
    unsafe impl aya::Pod for super::Meta {}
    unsafe impl aya::Pod for super::PolicyEntry {}
    unsafe impl aya::Pod for super::Classifier {}
    unsafe impl aya::Pod for super::RuleSet {}
    unsafe impl aya::Pod for super::RuleEntry {}
    unsafe impl aya::Pod for super::AddressEntry {}
    unsafe impl aya::Pod for super::RegistryEntry {}
    unsafe impl aya::Pod for crate::counters::Count {}
}

#[cfg(test)]
mod tests;
