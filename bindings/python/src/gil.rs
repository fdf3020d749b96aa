//! A cell that the GIL guards.

use std::cell::UnsafeCell;

use pyo3::Python;

/// A value that is read and replaced by whoever holds the GIL.
///
/// There is no borrow to hold: a value goes in or comes out whole, so no code of Python runs in between, and
/// nothing can be seen half-way. The module declares that it needs the GIL, and abi3 has no build without it.
pub struct GilCell<T>(UnsafeCell<T>);

// SAFETY: every access needs a `Python<'_>`, which only the one thread that holds the GIL has, and no access lasts
// beyond the call (no reference comes out).
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    /// A cell with `value` in it.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Puts `value` in and gives back what was there.
    pub fn replace(&self, _py: Python<'_>, value: T) -> T {
        // SAFETY: the GIL is held and no other reference exists: see the type. `mem::replace` runs no code of `T`.
        unsafe { std::mem::replace(&mut *self.0.get(), value) }
    }

    /// Puts `value` in; what was there is dropped afterwards.
    pub fn set(&self, py: Python<'_>, value: T) {
        drop(self.replace(py, value));
    }
}

impl<T> GilCell<T> {
    /// What is there, for the collector, which has no token of the GIL.
    ///
    /// # Safety
    /// The caller holds the GIL, and nothing is put in while the reference lives.
    pub unsafe fn peek(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.0.get() }
    }
}

impl<T: Copy> GilCell<T> {
    /// What is there.
    pub fn get(&self, _py: Python<'_>) -> T {
        // SAFETY: as `replace`; copying runs no code.
        unsafe { *self.0.get() }
    }
}

impl<T: Default> GilCell<T> {
    /// Takes out what is there.
    pub fn take(&self, py: Python<'_>) -> T {
        self.replace(py, T::default())
    }
}
