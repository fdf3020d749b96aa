//! Decides whether and how long to spin before parking.
//!
//! On the machines measured, a wake-up across two idle processors costs 20 to 50 us, and a hit
//! while spinning costs less than one. A waiter therefore spins for at most the cost of a wake-up,
//! and adapts: a hit keeps the budget at a multiple of the time that hits took, a miss halves it,
//! and a park that turns out to be short raises it again. At most (processors - 1) threads of the
//! process spin at a time.
//!
//! A program whose threads have processors of their own can ask for longer spins
//! ([`let_threads_spin`]): if a wake-up takes longer than the budget, each side finds the other one
//! asleep every time.
//!
//! On one processor, nobody spins. Instead, a waiter yields the processor once. If the other side
//! then runs and answers, both save the park and the wake-up. If it does not, or if another program
//! takes the processor meanwhile, the number of waits until the next yield doubles.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::clock;

/// The longest spin by default: the upper end of the measured cost of a wake-up across processors.
const MAX_SPIN_NS: u64 = 50_000;
/// The longest spin that a program can ask for. See `docs/internals/queue.md`.
const MAX_REQUESTED_NS: u64 = 1_000_000;
/// A smaller budget counts as none: reading the clock costs 25 ns, a wake-up on one processor about
/// 1 us.
const MIN_SPIN_NS: u64 = 1_000;
/// How often a waiter tries to get a spin permit. A thread that has just got its answer needs about
/// 100 ns to release its permit.
const PERMIT_TRIES: u32 = 64;

/// A longer yield let another program run. Both switches and the other side's answer cost 4 us.
const YIELD_NS: u64 = 20_000;
/// One of this many yields is timed. Two reads of the clock cost 2 % of a call.
const YIELDS_PER_TIMING: u32 = 16;
/// The maximum number of waits between two yields. With a busy neighbour, each yield costs its time
/// slice, 3 ms, so one in 65,536 is 1 % of waits of 5 us.
const MAX_BACKOFF: u32 = 1 << 16;

/// Consecutive yields of a channel's waiter. Measured with 2 to 8 senders, see
/// `docs/internals/queue.md`.
const MAX_YIELDS: u32 = 16;
/// If consecutive yields take longer, another program has run: its time slice is 3 ms, and one
/// round of all threads of a channel takes about 50 us.
const MAX_YIELDING_NS: u64 = 1_000_000;

/// Half of the shortest linger: about the cost of reading the clock twice.
const LINGER_NS: u64 = 30;
/// The longest linger is 1 us. A message that finds its receiver asleep waits at least that long.
const MAX_LINGER: u32 = 5;

/// How long a task looks before it arms. A cache line from a distant processor takes 400 ns, and the
/// other side may need two of them.
const TASK_LOOK_NS: u64 = 3_000;
/// A task that found something by looking this many times in a row then lets its thread run other
/// tasks.
const MAX_TASK_HITS: u16 = 32;
/// The maximum number of waits between two looks of a task, as a power of two. A wait takes 200 ns
/// and more, so a look of 3 us at each 8,192nd one is far below 1 %.
const MAX_TASK_BACKOFF: u16 = 13;

/// How often a waiter looks between two readings of the clock.
const LOOKS_PER_CLOCK: u32 = 16;

/// How often a thread asks for its number of processors before it reads its mask again. Reading it
/// takes some 1,000 instructions.
const CALLS_PER_READ: u32 = 256;

static SPINNERS: AtomicUsize = AtomicUsize::new(0);

/// The longest spin that the program has asked for, or 0: see [`let_threads_spin`].
static REQUESTED_NS: AtomicU64 = AtomicU64::new(0);

/// The longest spin of this process.
fn longest_ns() -> u64 {
    MAX_SPIN_NS.max(REQUESTED_NS.load(Ordering::Relaxed))
}

/// An adaptive spin: it remembers how one waiter's previous waits went.
#[derive(Debug)]
pub struct AdaptiveSpin {
    budget_ns: u64,
    /// Yields instead of parking.
    yielding: Backoff,
    yields: u32,
    /// Yields after parking.
    resuming: Backoff,
    /// How long a wait lingers after it has found something, as a power of two. 0: not at all.
    linger: u32,
}

/// Exponential backoff: an action is done each time while it helps, and half as often after each
/// consecutive failure.
#[derive(Debug)]
struct Backoff {
    /// How often the action is skipped from now on.
    left: u32,
    /// How often it is skipped after the next failure: a power of two.
    after: u32,
}

impl Backoff {
    const NEW: Self = Self { left: 0, after: 1 };

    fn is_due(&mut self) -> bool {
        let due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        due
    }

    fn record(&mut self, helpful: bool) {
        if helpful {
            self.after = 1;
        } else {
            self.left = self.after;
            self.after = (self.after * 2).min(MAX_BACKOFF);
        }
    }

    /// Packs the state into 22 bits.
    fn pack(&self) -> u64 {
        const { assert!(MAX_BACKOFF == 1 << 16) };
        u64::from(self.left) | u64::from(self.after.trailing_zeros()) << 17
    }

    fn unpack(packed: u64) -> Self {
        Self {
            left: (packed & 0x1_ffff) as u32,
            after: 1 << (packed >> 17 & 0x1f),
        }
    }
}

/// How a spin ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spun {
    /// The condition is true.
    Found,
    /// It is false, and the thread spun as long as it may.
    Missed,
    /// It is false, and the thread did not spin.
    Not,
}

impl Spun {
    fn without_spinning(found: bool) -> Self {
        match found {
            true => Self::Found,
            false => Self::Not,
        }
    }
}

impl Default for AdaptiveSpin {
    fn default() -> Self {
        Self::new()
    }
}

impl AdaptiveSpin {
    /// Creates the state of a waiter that has learnt nothing yet. It starts with the full budget.
    pub const fn new() -> Self {
        Self {
            budget_ns: MAX_SPIN_NS,
            yielding: Backoff::NEW,
            yields: 0,
            resuming: Backoff::NEW,
            linger: 0,
        }
    }

    /// Spins until `found` returns true or the budget is used up, for at most 50 us, or as long as
    /// the program has asked for. Returns whether it was found.
    #[inline(always)]
    pub fn until(&mut self, found: impl FnMut() -> bool) -> bool {
        self.spin(u64::MAX, found) == Spun::Found
    }

    /// Like [`until`](Self::until), for at most `max_ns`.
    #[inline(always)]
    pub fn spin(&mut self, max_ns: u64, mut found: impl FnMut() -> bool) -> Spun {
        if found() {
            return Spun::Found;
        }
        if cfg!(loom) {
            // Models have no time. They check again when they are woken.
            return Spun::Not;
        }
        if processors() < 2 {
            return Spun::without_spinning(self.yield_once(found));
        }
        self.spin_on_several(max_ns, found)
    }

    /// [`spin`](Self::spin) on several processors.
    fn spin_on_several(&mut self, max_ns: u64, mut found: impl FnMut() -> bool) -> Spun {
        let budget_ns = self.budget_ns.min(max_ns);
        if budget_ns < MIN_SPIN_NS {
            return Spun::Not;
        }
        let Some(_permit) = SpinPermit::acquire(&mut found) else {
            return Spun::without_spinning(found());
        };
        match look_for(budget_ns, found) {
            Some(took) => {
                self.budget_ns = self.budget_ns.max(took * 4).min(longest_ns());
                self.linger();
                Spun::Found
            }
            None => {
                self.budget_ns = budget_ns / 2;
                Spun::Missed
            }
        }
    }

    /// Adjusts the linger to the number of values that passed since the last wait.
    fn adjust_linger(&mut self, count: u64, capacity: u64) {
        if count >= 2 << self.linger && count <= capacity / 4 {
            self.linger = (self.linger + 1).min(MAX_LINGER);
        } else if count < 1 << self.linger || count > capacity / 2 {
            self.linger = self.linger.saturating_sub(1);
        }
    }

    fn linger(&self) {
        if self.linger > 0 {
            let until = clock::now() + (LINGER_NS << self.linger);
            while clock::now() < until {
                std::hint::spin_loop();
            }
        }
    }

    /// For more runnable threads than processors: yields a few times, as long as that helps and no
    /// other program takes the processor meanwhile.
    fn yield_some(&mut self, mut found: impl FnMut() -> bool) -> bool {
        if !self.yielding.is_due() {
            return false;
        }
        let start = clock::now();
        let mut hit = false;
        let mut is_short = true;
        for _ in 0..MAX_YIELDS {
            std::thread::yield_now();
            hit = found();
            is_short = clock::now().saturating_sub(start) < MAX_YIELDING_NS;
            if hit || !is_short {
                break;
            }
        }
        self.yielding.record(hit && is_short);
        hit
    }

    /// A woken waiter lets its waker continue. On a shared processor, it was woken for one value or
    /// slot, and a moment later there are many.
    fn yield_to_waker(&mut self) {
        if self.resuming.is_due() {
            let start = clock::now();
            std::thread::yield_now();
            let took = clock::now().saturating_sub(start);
            self.resuming.record(took < MAX_YIELDING_NS);
        }
    }

    #[inline(always)]
    fn yield_once(&mut self, mut found: impl FnMut() -> bool) -> bool {
        if !self.yielding.is_due() {
            return false;
        }
        let timed = self.yields.is_multiple_of(YIELDS_PER_TIMING);
        self.yields = self.yields.wrapping_add(1);
        let start = if timed { clock::now() } else { 0 };
        std::thread::yield_now();
        let hit = found();
        let is_short = !timed || clock::now().saturating_sub(start) < YIELD_NS;
        self.yielding.record(hit && is_short);
        hit
    }

    /// Calls `park`, and learns from its duration ([`record_sleep`](Self::record_sleep)).
    pub fn sleep<R>(&mut self, park: impl FnOnce() -> R) -> R {
        if processors() < 2 {
            return park();
        }
        let since = clock::now();
        let woken = park();
        self.record_sleep(clock::now().saturating_sub(since));
        woken
    }

    /// Packs the state: 16 bits of budget, 22 of each [`Backoff`], 4 of linger. `yields` is not
    /// included, because shared waiters do not use `yield_once`.
    fn pack(&self) -> u64 {
        const { assert!(MAX_SPIN_NS < 1 << 16 && MAX_LINGER < 16) };
        self.budget_ns.min(MAX_SPIN_NS)
            | self.yielding.pack() << 16
            | self.resuming.pack() << 38
            | u64::from(self.linger) << 60
    }

    fn unpack(packed: u64) -> Self {
        Self {
            budget_ns: packed & 0xffff,
            yielding: Backoff::unpack(packed >> 16),
            yields: 0,
            resuming: Backoff::unpack(packed >> 38),
            linger: (packed >> 60) as u32,
        }
    }

    /// Learns from a sleep of this duration: a short one would have been worth spinning for.
    pub fn record_sleep(&mut self, ns: u64) {
        let longest_ns = longest_ns();
        if ns >= longest_ns || self.budget_ns >= longest_ns {
            return;
        }
        self.budget_ns = if longest_ns > MAX_SPIN_NS {
            // A budget that only doubled would be halved again by the next miss.
            longest_ns
        } else {
            (self.budget_ns * 2).clamp(MIN_SPIN_NS * 4, MAX_SPIN_NS)
        };
    }
}

/// What a task found by looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The condition is true.
    Found,
    /// It is false, or the task did not look.
    Missed,
    /// The task did not look, because it did that too often since it last gave its thread back.
    Often,
}

/// An [`AdaptiveSpin`] that several waiters share, so that all learn from each. Two concurrent
/// waits may overwrite each other's result, which only costs learning it again.
#[derive(Debug)]
pub(crate) struct SharedSpin {
    packed: AtomicU64,
    /// How many values had passed through the channel at the last wait.
    transferred: AtomicU64,
    /// How many waits of tasks are left until the next look.
    task_left: AtomicU32,
    /// How often in a row a look has found something.
    task_hits: AtomicU16,
    /// How often in a row it has not.
    task_misses: AtomicU16,
}

impl SharedSpin {
    pub(crate) fn new() -> Self {
        Self {
            packed: AtomicU64::new(AdaptiveSpin::new().pack()),
            transferred: AtomicU64::new(0),
            task_left: AtomicU32::new(0),
            task_hits: AtomicU16::new(0),
            task_misses: AtomicU16::new(0),
        }
    }

    /// Like [`AdaptiveSpin::until`] if there are several processors, followed by
    /// [`AdaptiveSpin::yield_some`].
    ///
    /// In a model, it does not check at all, because a waiter checks again after it has armed.
    pub(crate) fn until(&self, transferred: u64, capacity: u64, found: impl Fn() -> bool) -> bool {
        if cfg!(loom) {
            return false;
        }
        let before = self.transferred.load(Ordering::Relaxed);
        self.transferred.store(transferred, Ordering::Relaxed);
        self.with(|spin| {
            spin.adjust_linger(transferred.wrapping_sub(before), capacity);
            found() || processors() > 1 && spin.until(&found) || spin.yield_some(&found)
        })
    }

    /// Whether a task that is about to wait should [`look`](Self::look) first. After each consecutive
    /// look without success, it is due half as often.
    #[inline(always)]
    pub(crate) fn is_look_due(&self) -> bool {
        let left = self.task_left.load(Ordering::Relaxed);
        if left > 0 {
            self.task_left.store(left - 1, Ordering::Relaxed);
        }
        left == 0 && !cfg!(loom)
    }

    /// For a task, whose thread may have other tasks to run: looks for a few microseconds.
    pub(crate) fn look(&self, transferred: u64, capacity: u64, found: impl Fn() -> bool) -> Looked {
        let hits = self.task_hits.load(Ordering::Relaxed);
        if hits >= MAX_TASK_HITS {
            self.task_hits.store(0, Ordering::Relaxed);
            return Looked::Often;
        }
        let before = self.transferred.load(Ordering::Relaxed);
        self.transferred.store(transferred, Ordering::Relaxed);
        let hit = processors() > 1
            && self.with(|spin| {
                spin.adjust_linger(transferred.wrapping_sub(before), capacity);
                let hit = look_for(TASK_LOOK_NS, found).is_some();
                if hit {
                    spin.linger();
                }
                hit
            });
        if hit {
            self.task_hits.store(hits + 1, Ordering::Relaxed);
            self.task_misses.store(0, Ordering::Relaxed);
            return Looked::Found;
        }
        let misses = self.task_misses.load(Ordering::Relaxed);
        self.task_left.store(1 << misses, Ordering::Relaxed);
        self.task_misses
            .store((misses + 1).min(MAX_TASK_BACKOFF), Ordering::Relaxed);
        self.task_hits.store(0, Ordering::Relaxed);
        Looked::Missed
    }

    /// Like [`AdaptiveSpin::sleep`], and lets the waker continue. Returns whether the caller was
    /// woken.
    pub(crate) fn sleep(&self, park: impl FnOnce() -> bool) -> bool {
        self.with(|spin| {
            let woken = spin.sleep(park);
            if woken {
                spin.yield_to_waker();
            }
            woken
        })
    }

    fn with<R>(&self, with: impl FnOnce(&mut AdaptiveSpin) -> R) -> R {
        let mut spin = AdaptiveSpin::unpack(self.packed.load(Ordering::Relaxed));
        let result = with(&mut spin);
        self.packed.store(spin.pack(), Ordering::Relaxed);
        result
    }
}

/// Looks for about `ns`. Returns how long it took until `found` returned true, or `None`.
///
/// Reading the clock takes 20 to 110 ns, so what the first looks find has taken 0 ns.
#[inline(always)]
fn look_for(ns: u64, mut found: impl FnMut() -> bool) -> Option<u64> {
    let mut start = None;
    loop {
        for _ in 0..LOOKS_PER_CLOCK {
            if found() {
                return Some(start.map_or(0, |start| clock::now().saturating_sub(start)));
            }
            std::hint::spin_loop();
        }
        let now = clock::now();
        if now.saturating_sub(*start.get_or_insert(now)) >= ns {
            return None;
        }
    }
}

/// A permit to spin. The process has (processors - 1) permits.
struct SpinPermit;

impl SpinPermit {
    fn acquire(found: &mut impl FnMut() -> bool) -> Option<Self> {
        let most = processors() - 1;
        for _ in 0..PERMIT_TRIES {
            let now = SPINNERS.load(Ordering::Relaxed);
            if now < most
                && SPINNERS
                    .compare_exchange(now, now + 1, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(Self);
            }
            if found() {
                return None;
            }
            std::hint::spin_loop();
        }
        None
    }
}

impl Drop for SpinPermit {
    fn drop(&mut self) {
        SPINNERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// From now on, the threads of this process spin for up to `max_ns`, if that is more than 50 us,
/// and at most 1 ms. A thread that is pinned to one processor spins if the threads of the process
/// may together use several. Without this, such a thread does not spin, because a thread that it
/// waits for is likely to be pinned to the same one.
pub fn let_threads_spin(max_ns: u64) {
    let wanted = max_ns.min(MAX_REQUESTED_NS);
    if REQUESTED_NS.load(Ordering::Relaxed) < wanted {
        REQUESTED_NS.fetch_max(wanted, Ordering::Relaxed);
    }
}

/// The number of processors that the calling thread may use: its affinity mask, limited by the
/// quota of the control group. The mask is read again at every 256th call of the thread, because it
/// can change; the quota is read once. After [`let_threads_spin`], the masks of all threads
/// count for a thread that may use one processor.
#[inline]
pub fn processors() -> usize {
    let (calls_left, known) = KNOWN.get();
    if calls_left == 0 {
        return read_processors();
    }
    KNOWN.set((calls_left - 1, known));
    known
}

thread_local! {
    /// The number of calls until the mask is read again, and the number of processors.
    static KNOWN: Cell<(u32, usize)> = const { Cell::new((0, 1)) };
}

#[cold]
fn read_processors() -> usize {
    let mut in_mask = in_affinity_mask();
    if in_mask == 1 && REQUESTED_NS.load(Ordering::Relaxed) > 0 {
        in_mask = in_masks_of_process();
    }
    let known = in_mask.min(quota()).max(1);
    KNOWN.set((CALLS_PER_READ - 1, known));
    known
}

/// The mask of a thread; 0 is the calling thread. `None`: the thread has ended, or the set has too
/// few bits for the number of processors.
fn affinity_mask(thread: libc::pid_t) -> Option<libc::cpu_set_t> {
    // SAFETY: an all-zero cpu_set_t is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the size is that of the set behind the pointer.
    let failed = unsafe { libc::sched_getaffinity(thread, size_of_val(&set), &mut set) };
    (failed == 0).then_some(set)
}

fn count(set: &libc::cpu_set_t) -> usize {
    // SAFETY: the set was filled by `affinity_mask`.
    unsafe { libc::CPU_COUNT(set) as usize }
}

/// The processors of the calling thread. If there are too many for a set, there is more than one.
fn in_affinity_mask() -> usize {
    affinity_mask(0).map_or(usize::MAX, |set| count(&set))
}

/// The processors that the threads of the process may together use. 0: there is no /proc. It takes
/// about 1 us for each thread.
fn in_masks_of_process() -> usize {
    // SAFETY: an all-zero cpu_set_t is a valid, empty set.
    let mut all: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    for entry in threads.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(set) = number.and_then(affinity_mask) {
            for processor in 0..libc::CPU_SETSIZE as usize {
                // SAFETY: the number is below the size of the sets.
                unsafe {
                    if libc::CPU_ISSET(processor, &set) {
                        libc::CPU_SET(processor, &mut all);
                    }
                }
            }
        }
    }
    count(&all)
}

/// The limit of the control group, if it is below the mask. std reads the files.
fn quota() -> usize {
    static QUOTA: OnceLock<usize> = OnceLock::new();
    *QUOTA.get_or_init(|| {
        let both = std::thread::available_parallelism().map_or(1, usize::from);
        if both < in_affinity_mask() {
            both
        } else {
            usize::MAX
        }
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{AdaptiveSpin, Backoff, Looked, MAX_SPIN_NS, SharedSpin};

    #[test]
    fn misses_end_the_spinning_and_short_sleeps_bring_it_back() {
        let mut spin = AdaptiveSpin::new();
        if super::processors() < 2 {
            return;
        }
        for _ in 0..10 {
            assert!(!spin.until(|| false));
        }
        assert!(spin.budget_ns < super::MIN_SPIN_NS);
        spin.record_sleep(MAX_SPIN_NS * 2);
        assert!(spin.budget_ns < super::MIN_SPIN_NS);
        spin.record_sleep(3_000);
        assert!(spin.budget_ns >= super::MIN_SPIN_NS);
    }

    #[test]
    fn what_was_learnt_is_the_same_in_one_word() {
        let spin = AdaptiveSpin {
            budget_ns: 12_345,
            yielding: Backoff {
                left: super::MAX_BACKOFF,
                after: 64,
            },
            yields: 0,
            resuming: Backoff {
                left: 17,
                after: super::MAX_BACKOFF,
            },
            linger: super::MAX_LINGER,
        };
        let back = AdaptiveSpin::unpack(spin.pack());
        assert_eq!(format!("{spin:?}"), format!("{back:?}"));
    }

    #[test]
    fn a_task_that_finds_nothing_looks_rarely() {
        if super::processors() < 2 {
            return;
        }
        let spin = SharedSpin::new();
        let waits = (0..1_000).filter(|_| {
            let due = spin.is_look_due();
            if due {
                assert_eq!(spin.look(0, 16, || false), Looked::Missed);
            }
            due
        });
        assert_eq!(waits.count(), 10, "1 + 2 + 4 .. waits between the looks");
    }

    #[test]
    fn a_task_that_finds_something_each_time_lets_others_run() {
        if super::processors() < 2 {
            return;
        }
        let spin = SharedSpin::new();
        for _ in 0..2 {
            for _ in 0..super::MAX_TASK_HITS {
                assert_eq!(spin.look(0, 16, || true), Looked::Found);
            }
            assert_eq!(spin.look(0, 16, || true), Looked::Often);
        }
    }

    #[test]
    fn what_is_there_already_is_found_without_spinning() {
        let mut spin = AdaptiveSpin::new();
        spin.budget_ns = 0;
        assert!(spin.until(|| true));
    }

    #[test]
    fn yields_that_fail_become_rare_and_one_that_helps_brings_them_back() {
        let mut spin = AdaptiveSpin::new();
        let waits = (0..1_000).filter(|_| {
            let before = spin.yielding.left;
            spin.yield_once(|| false);
            before == 0
        });
        assert_eq!(waits.count(), 10, "1 + 2 + 4 .. waits between the yields");
        spin.yielding.left = 0;
        let mut hits = 0;
        for _ in 0..100 {
            hits += u32::from(spin.yield_once(|| true));
            spin.yielding.left = 0;
        }
        assert_eq!(hits, 100);
    }
}
