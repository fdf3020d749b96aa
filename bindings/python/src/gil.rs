//! A cell that is protected by the GIL.

use std::cell::UnsafeCell;

use pyo3::Python;

/// A value that is read and replaced by the thread that holds the GIL.
///
/// There are no borrows: a value goes in or comes out as a whole, so no Python code runs in
/// between, and no code sees a partial change. The module declares that it needs the GIL, and abi3
/// has no build without it.
pub struct GilCell<T>(UnsafeCell<T>);

// SAFETY: every access needs a `Python<'_>`, which only the thread that holds the GIL has, and no
// access lasts longer than the call (no reference is returned).
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    /// A cell that contains `value`.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Replaces the value and returns the old one.
    pub fn replace(&self, _py: Python<'_>, value: T) -> T {
        // SAFETY: the GIL is held and no other reference exists: see the type. `mem::replace` runs
        // no code of `T`.
        unsafe { std::mem::replace(&mut *self.0.get(), value) }
    }

    /// Replaces the value and then drops the old one.
    pub fn set(&self, py: Python<'_>, value: T) {
        drop(self.replace(py, value));
    }
}

impl<T> GilCell<T> {
    /// The value, for the garbage collector, which has no GIL token.
    ///
    /// # Safety
    /// The caller holds the GIL, and the value is not replaced while the reference lives.
    pub unsafe fn peek(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.0.get() }
    }
}

impl<T: Copy> GilCell<T> {
    /// A copy of the value.
    pub fn get(&self, _py: Python<'_>) -> T {
        // SAFETY: as in `replace`; copying runs no code.
        unsafe { *self.0.get() }
    }
}

impl<T: Default> GilCell<T> {
    /// Takes the value out.
    pub fn take(&self, py: Python<'_>) -> T {
        self.replace(py, T::default())
    }
}
