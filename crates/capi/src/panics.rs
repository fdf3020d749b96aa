//! The panic hook of a library.
//!
//! The standard library prints a backtrace while it holds a lock. If memory runs out in between,
//! its hook for failed allocations acquires the same lock, and the process hangs. The hook of this
//! module therefore first checks that the memory is available, and prints the panic without a
//! backtrace if it is not.

use std::io::Write;
use std::sync::Once;

/// The memory that a backtrace may need, in bytes: the library's file, which is mapped (23 MB for a
/// debug build), and the tables that are read from it.
const BACKTRACE: usize = 64 << 20;

/// Sets the hook, once for the library's own standard library. It calls the previous hook if memory
/// is available.
pub(crate) fn set_hook() {
    static SET: Once = Once::new();
    // The hook cannot be changed during a panic.
    if std::thread::panicking() {
        return;
    }
    SET.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let mut probe = Vec::<u8>::new();
            if probe.try_reserve_exact(BACKTRACE).is_ok() {
                drop(probe);
                previous(info);
            } else {
                // Standard error is unbuffered, so this allocates nothing. A write error is
                // ignored.
                let _ = writeln!(std::io::stderr(), "\n{info}\nno memory for a backtrace");
            }
        }));
    });
}
