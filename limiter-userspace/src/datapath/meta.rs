//! The page of map `META`, shared with the running program: single fields, read and written atomically.

use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use limiter_common::hash::{KeyHash, Seed};
use limiter_common::key::Key;
use limiter_common::layout::{Meta, VERSION, map};

use super::error::MapError;
use super::mapping::{Access, Mapping};

/// The page.
#[derive(Debug)]
pub(super) struct MetaPage(Mapping<Meta>);

impl MetaPage {
    pub(super) fn new(meta: impl AsFd) -> Result<Self, MapError> {
        let page = Mapping::new(meta, 1, Access::Write);
        Ok(Self(page.map_err(|cause| MapError::new(map::META, cause))?))
    }

    /// Fills a new page; before any program uses it.
    pub(super) fn initialise(&self, seed: Seed) {
        for (at, half) in seed.0.into_iter().enumerate() {
            self.long(offset_of!(Meta, seed) + 8 * at).store(half, Relaxed);
        }
        let total = KeyHash::of(seed, Key::TOTAL);
        self.long(offset_of!(Meta, total)).store(total.0, Relaxed);
        self.int(offset_of!(Meta, next_rule_id)).store(1, Relaxed);
        self.int(offset_of!(Meta, layout)).store(VERSION, Release);
    }

    pub(super) fn layout(&self) -> u32 {
        self.int(offset_of!(Meta, layout)).load(Acquire)
    }

    pub(super) fn seed(&self) -> Seed {
        Seed([0, 8].map(|at| self.long(offset_of!(Meta, seed) + at).load(Relaxed)))
    }

    /// 0 before the first policy.
    pub(super) fn generation(&self) -> u32 {
        self.int(offset_of!(Meta, generation)).load(Acquire)
    }

    /// From this store on, new packets are judged by the other half of the policy maps.
    pub(super) fn flip(&self, generation: u32) {
        self.int(offset_of!(Meta, generation)).store(generation, Release);
    }

    pub(super) fn next_rule_id(&self) -> u32 {
        self.int(offset_of!(Meta, next_rule_id)).load(Relaxed)
    }

    pub(super) fn set_next_rule_id(&self, id: u32) {
        self.int(offset_of!(Meta, next_rule_id)).store(id, Relaxed);
    }

    pub(super) fn wall_offset(&self) -> u64 {
        self.long(offset_of!(Meta, wall_offset)).load(Relaxed)
    }

    pub(super) fn set_wall_offset(&self, nanos: u64) {
        self.long(offset_of!(Meta, wall_offset)).store(nanos, Relaxed);
    }

    pub(super) fn heartbeat(&self) -> u64 {
        self.long(offset_of!(Meta, heartbeat)).load(Relaxed)
    }

    pub(super) fn beat(&self, unix_nanos: u64) {
        self.long(offset_of!(Meta, heartbeat)).store(unix_nanos, Relaxed);
    }

    fn long(&self, offset: usize) -> &AtomicU64 {
        &self.0.words()[offset / 8]
    }

    fn int(&self, offset: usize) -> &AtomicU32 {
        self.0.half(offset)
    }
}
