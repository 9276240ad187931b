//! BPF maps seen as memory. All `unsafe` around mmap is in this file; what the bytes mean is known
//! elsewhere.

use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use aya::Pod;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Whether we write through a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads only; a write would be a fault.
    Read,
    /// Reads and writes.
    Write,
}

/// The values of an array map made with `BPF_F_MMAPABLE`, shared with the kernel program.
#[derive(Debug)]
pub(super) struct Mapping<T> {
    start: NonNull<u8>,
    /// Bytes, as mapped.
    length: usize,
    /// Values of `T`.
    count: usize,
    value: PhantomData<T>,
}

// SAFETY: the mapping belongs to this value alone until it is dropped, and it is only read by volatile
// or atomic operations.
unsafe impl<T: Pod + Send> Send for Mapping<T> {}

impl<T: Pod> Mapping<T> {
    /// Maps `count` values of a map with 8-byte aligned values.
    pub(super) fn new(map: impl AsFd, count: usize, access: Access) -> io::Result<Self> {
        assert!(align_of::<T>() <= 8 && size_of::<T>().is_multiple_of(8));
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => ProtFlags::READ | ProtFlags::WRITE,
        };
        let length =
            count.saturating_mul(size_of::<T>()).next_multiple_of(rustix::param::page_size());
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory of ours. The
        // kernel refuses lengths beyond the map's.
        let start =
            unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, map, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, length, count, value: PhantomData })
    }

    /// How many values.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// A copy of one value; torn if the kernel writes it at this moment. `None` beyond the end.
    #[inline]
    pub(super) fn read(&self, index: usize) -> Option<T> {
        if index >= self.count {
            return None;
        }
        // SAFETY: within the mapping, as just checked, and aligned, as the mapping begins a page. Any bits
        // are a valid `Pod`. The kernel changes them meanwhile, therefore volatile.
        Some(unsafe { self.start.cast::<T>().add(index).read_volatile() })
    }

    /// The 8-byte words, to be read and (if mapped so) written atomically.
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the whole mapping is readable and aligned, and lives as long as `self`. User space
        // touches it only through atomics and volatile reads; the kernel program through the same.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().cast(), self.count * size_of::<T>() / 8)
        }
    }

    /// One 4-byte half of a word, `offset` bytes from the beginning.
    pub(super) fn half(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset < self.count * size_of::<T>());
        // SAFETY: within the mapping and aligned, as just checked; otherwise as for `words`.
        unsafe { self.start.add(offset).cast().as_ref() }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; no reference into it outlives `self`. It can't fail for a
        // mapping that exists.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
