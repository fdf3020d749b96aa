//! Memory for owned values, whose sizes a message decides.
//!
//! [`Decode::owned`](crate::Decode::owned) returns a value and no error, so a list or string for
//! which there is no memory unwinds to [`fallibly`], without the panic hook. Outside of it the
//! process ends as the standard library ends it.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// Whether a caller of `fallibly` is further up on this thread's stack.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// The payload of the unwind.
struct NoMemory;

/// Runs `f`. Returns `None` if there is no memory for the value that it makes.
pub(crate) fn fallibly<R>(f: impl FnOnce() -> R) -> Option<R> {
    let before = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    IS_CAUGHT.set(before);
    match result {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<NoMemory>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// A list with room for `count` items.
#[inline]
pub(crate) fn with_room<T>(count: usize) -> Vec<T> {
    let mut list = Vec::new();
    if list.try_reserve_exact(count).is_err() {
        missing(Layout::array::<T>(count).ok());
    }
    list
}

/// A string of its own.
#[inline]
pub(crate) fn text(text: &str) -> String {
    let mut owned = String::new();
    if owned.try_reserve_exact(text.len()).is_err() {
        missing(Layout::array::<u8>(text.len()).ok());
    }
    owned.push_str(text);
    owned
}

#[cold]
#[inline(never)]
fn missing(layout: Option<Layout>) -> ! {
    if IS_CAUGHT.get() {
        resume_unwind(Box::new(NoMemory));
    }
    handle_alloc_error(layout.unwrap_or(Layout::new::<u64>()))
}

#[cfg(test)]
mod tests {
    use super::{fallibly, with_room};

    #[test]
    fn list_without_memory_ends_the_outermost_attempt_alone() {
        assert!(fallibly(|| with_room::<u64>(usize::MAX / 8)).is_none());
        let inner = fallibly(|| {
            let inner = fallibly(|| with_room::<u64>(usize::MAX / 8));
            (inner.is_none(), with_room::<u64>(3).capacity())
        });
        assert!(matches!(inner, Some((true, 3..))));
    }

    #[test]
    #[should_panic(expected = "another reason")]
    fn panic_in_an_attempt_goes_on() {
        fallibly(|| panic!("another reason"));
    }
}
