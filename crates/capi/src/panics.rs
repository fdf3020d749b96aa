//! The panic hook of a library.
//!
//! The standard library prints a backtrace under a lock. Where symbolising it finds no memory, the hook
//! for failed allocations takes that lock again, and the thread waits for itself: the process hangs. So a
//! library asks for the memory first, and prints the panic without a backtrace where there is none.

use std::io::Write;
use std::sync::Once;

/// Bytes that a backtrace may take: the library's file, which is mapped (23 MB of a debug build), and the
/// tables that are read from it.
const BACKTRACE: usize = 64 << 20;

/// Sets the hook, once for the library's own standard library. The hook from before prints where there is
/// memory.
pub(crate) fn set_hook() {
    static SET: Once = Once::new();
    // The hook cannot be changed while a panic is under way.
    if std::thread::panicking() {
        return;
    }
    SET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let mut probe = Vec::<u8>::new();
            if probe.try_reserve_exact(BACKTRACE).is_ok() {
                drop(probe);
                before(info);
            } else {
                // Standard error has no buffer, so this allocates nothing. Nobody hears of a failure.
                let _ = writeln!(
                    std::io::stderr(),
                    "\n{info}\nthere is no memory for a backtrace"
                );
            }
        }));
    });
}
