//! Load-time constants of the bench's programs.

/// A constant that the loader may have replaced, so the compiler must not fold it.
#[inline(always)]
pub fn read<T: Copy>(value: &'static T) -> T {
    // SAFETY: a reference is always readable.
    unsafe { core::ptr::read_volatile(value) }
}
