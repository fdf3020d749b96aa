//! Temporary shortage of stacks: actors hold all of them, and the system refuses more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg_runtime::{Actor, ActorRef, Context, Handler, metrics, sleep, spawn, start};

use crate::kit::Random;

/// Holders per worker: more than it has stacks when `max_stacks` is small.
const HOLDERS: usize = 24;
/// Stacks that a worker has for turns, in addition to its share of `max_stacks`.
const TURN_RESERVE: usize = 16;

/// The approximate number of requests for stacks that the system refuses in a row: as many as occur
/// until stacks are free again.
const REFUSED_AT_ONCE: usize = 100;

/// Holds its stack for a while on request.
struct Holder(Arc<Held>);

/// The number of stacks that the holders have now, and their maximum.
#[derive(Default)]
struct Held {
    now: AtomicUsize,
    max: AtomicUsize,
}

struct Hold(Duration);

impl Actor for Holder {}

impl Handler<Hold> for Holder {
    type Reply = ();
    fn handle(&mut self, Hold(time): Hold, _: &Context<'_, Self>) {
        let now = self.0.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.max.fetch_max(now, Ordering::Relaxed);
        sleep(time);
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes stacks short in one runtime.
pub struct Shortage {
    workers: usize,
    holders: Vec<ActorRef<Holder>>,
    held: Arc<Held>,
}

impl Shortage {
    /// The system refuses stacks from the beginning.
    pub fn new(workers: usize) -> Arc<Self> {
        system::refuse(REFUSED_AT_ONCE);
        let held = Arc::default();
        Arc::new(Self {
            workers,
            holders: (0..HOLDERS * workers)
                .map(|_| start(Holder(Arc::clone(&held))))
                .collect(),
            held,
        })
    }

    /// Actors hold many stacks, or all, for less than a millisecond, and the system may refuse to
    /// give more.
    pub fn begin(&self, random: &Random) {
        let time = Duration::from_micros(random.below(200));
        if random.one_in(2) {
            system::refuse(random.below(2 * REFUSED_AT_ONCE as u64) as usize);
        }
        let first = random.below(self.holders.len() as u64) as usize;
        for holder in &self.holders[first..] {
            holder.cast(Hold(time)).expect("a holder is there");
        }
        for _ in 0..random.below(4) {
            // It may find no stack.
            drop(spawn(move || sleep(time)));
        }
    }

    /// Checks after many trees that both kinds of shortage occurred, and that they ended no actor
    /// that had begun.
    pub fn check(&self) {
        system::refuse(0);
        for holder in &self.holders {
            holder
                .call(Hold(Duration::ZERO))
                .expect("a holder is there");
        }
        let most = self.held.max.load(Ordering::Relaxed);
        assert!(
            (TURN_RESERVE..HOLDERS * self.workers).contains(&most),
            "{most} stacks were held"
        );
        let total = metrics::metrics().total();
        assert!(total.ended_stacks["no_stack"] > 0);
        for shortage in ["no_stack", "stopped"] {
            assert_eq!(total.ended_behaviours[shortage], 0, "{shortage}");
        }
        assert!(system::refused() > 0 || !system::CAN_REFUSE);
    }
}

/// The system calls that provide stacks: these functions replace those of libc.
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, thalweg_threads, feature = "sanitizer"))
))]
mod system {
    use std::ffi::{c_int, c_long, c_void};
    use std::sync::atomic::{AtomicUsize, Ordering};

    pub const CAN_REFUSE: bool = true;

    /// The number of requests that fail from now on.
    static REFUSES: AtomicUsize = AtomicUsize::new(0);
    static REFUSED: AtomicUsize = AtomicUsize::new(0);

    const MADV_GUARD_INSTALL: c_int = 102;
    /// No other guard is as large: `std`'s is one page.
    const GUARD: usize = 16 << 10;

    pub fn refuse(requests: usize) {
        REFUSES.store(requests, Ordering::Relaxed);
    }

    pub fn refused() -> usize {
        REFUSED.load(Ordering::Relaxed)
    }

    fn is_refused() -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        let refused = REFUSES
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok();
        if refused {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            // SAFETY: `errno` belongs to this thread.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
        }
        refused
    }

    #[unsafe(no_mangle)]
    extern "C" fn mmap(
        start: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void {
        let stacks = libc::MAP_NORESERVE | libc::MAP_STACK;
        if flags & stacks == stacks && is_refused() {
            return libc::MAP_FAILED;
        }
        // SAFETY: the caller's arguments, unchanged.
        let start = unsafe {
            libc::syscall(
                libc::SYS_mmap,
                start,
                len,
                c_long::from(protection),
                c_long::from(flags),
                c_long::from(file),
                offset,
            )
        };
        std::ptr::with_exposed_provenance_mut(start as usize)
    }

    #[unsafe(no_mangle)]
    extern "C" fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int {
        if advice == MADV_GUARD_INSTALL && len >= GUARD && is_refused() {
            return -1;
        }
        // SAFETY: the caller's arguments, unchanged.
        unsafe { libc::syscall(libc::SYS_madvise, start, len, c_long::from(advice)) as c_int }
    }

    #[unsafe(no_mangle)]
    extern "C" fn mprotect(start: *mut c_void, len: usize, protection: c_int) -> c_int {
        if protection == libc::PROT_NONE && len >= GUARD && is_refused() {
            return -1;
        }
        // SAFETY: the caller's arguments, unchanged.
        unsafe { libc::syscall(libc::SYS_mprotect, start, len, c_long::from(protection)) as c_int }
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, thalweg_threads, feature = "sanitizer"))
)))]
mod system {
    pub const CAN_REFUSE: bool = false;

    pub fn refuse(_: usize) {}

    pub fn refused() -> usize {
        0
    }
}
