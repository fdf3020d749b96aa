//! Tests of single situations, and a randomised comparison of the wheel with a sorted map.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;

const HOUR: u64 = 3_600_000_000_000;

/// The middle of a tick, days after the machine was started.
const START: u64 = 12_345_678 * TICK_NS * 500 + TICK_NS / 2;

/// A wheel, its entries (identified by their index), and the entries that have fired.
struct Bench {
    wheel: Wheel,
    entries: Box<[TimerEntry]>,
    fired: RefCell<Vec<usize>>,
}

impl Bench {
    fn new(now: u64, entries: usize) -> Self {
        Self {
            wheel: Wheel::new(now),
            entries: (0..entries)
                .map(|name| TimerEntry::new(std::ptr::without_provenance(name)))
                .collect(),
            fired: RefCell::default(),
        }
    }

    fn set(&self, name: usize, deadline: u64) {
        // SAFETY: the entries stay in their box, and `Drop` cancels the pending ones.
        unsafe {
            self.wheel
                .insert(NonNull::from(&self.entries[name]), deadline);
        }
    }

    fn cancel(&self, name: usize) -> bool {
        // SAFETY: there is only one wheel.
        unsafe { self.wheel.cancel(NonNull::from(&self.entries[name])) }
    }

    fn advance_with(&self, now: u64, mut and: impl FnMut(usize)) -> usize {
        self.wheel.advance(now, |entry| {
            // SAFETY: it is one of `entries`.
            let entry = unsafe { entry.as_ref() };
            assert!(!entry.is_pending());
            let name = entry.data.get().addr();
            self.fired.borrow_mut().push(name);
            and(name);
        })
    }

    /// Returns the entries that fire at `now`.
    fn advance(&self, now: u64) -> Vec<usize> {
        let count = self.advance_with(now, |_| ());
        let fired = self.fired.take();
        assert_eq!(count, fired.len());
        fired
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for name in 0..self.entries.len() {
            self.cancel(name);
        }
    }
}

#[test]
fn timer_fires_at_most_one_tick_after_its_deadline() {
    for deadline in [
        START + 1,
        START + TICK_NS / 2,
        START + TICK_NS,
        START + HOUR,
    ] {
        let bench = Bench::new(START, 1);
        bench.set(0, deadline);
        assert_eq!(bench.advance(deadline - 1), []);
        assert_eq!(bench.wheel.len(), 1);
        assert_eq!(bench.advance(deadline + TICK_NS - 1), [0]);
        assert!(bench.wheel.is_empty());
        assert_eq!(bench.advance(deadline + HOUR), []);
    }
}

#[test]
fn deadline_on_a_tick_fires_exactly() {
    let bench = Bench::new(START, 1);
    let deadline = START.next_multiple_of(TICK_NS) + 1_000 * TICK_NS;
    bench.set(0, deadline);
    assert_eq!(bench.wheel.next_deadline(), Some(deadline));
    assert_eq!(bench.advance(deadline - 1), []);
    assert_eq!(bench.advance(deadline), [0]);
}

#[test]
fn past_deadline_fires_at_the_next_advance() {
    let bench = Bench::new(START, 3);
    bench.set(0, 0);
    bench.set(1, START - HOUR);
    bench.set(2, START - START % TICK_NS);
    assert!(bench.wheel.next_deadline().is_some_and(|at| at <= START));
    assert_eq!(bench.advance(START), [0, 1, 2]);
    assert_eq!(bench.wheel.next_deadline(), None);
}

#[test]
fn deadline_at_the_end_of_the_clock_fires() {
    let bench = Bench::new(START, 4);
    bench.set(0, u64::MAX);
    bench.set(1, u64::MAX - 1);
    bench.set(2, u64::MAX - 2 * TICK_NS);
    bench.set(3, u64::MAX / 2);
    let middle = (u64::MAX / 2).next_multiple_of(TICK_NS);
    assert_eq!(bench.wheel.next_deadline(), Some(middle));
    assert_eq!(bench.advance(u64::MAX / 2 - 1), []);
    assert_eq!(bench.advance(middle), [3]);
    assert_eq!(bench.advance(u64::MAX - 1), [2]);
    // Their tick ends after the clock does.
    assert_eq!(bench.advance(u64::MAX), []);
    assert_eq!(bench.wheel.next_deadline(), Some(u64::MAX));
    assert!(bench.cancel(0) && bench.cancel(1));
}

#[test]
fn equal_deadlines_fire_in_insertion_order() {
    let bench = Bench::new(START, 100);
    let deadline = START + HOUR;
    for name in 0..50 {
        bench.set(name, deadline);
    }
    // The other entries are set after the earlier ones have cascaded down some levels.
    assert_eq!(bench.advance(deadline - 1_000_000), []);
    for name in 50..100 {
        bench.set(name, deadline);
    }
    assert!(bench.cancel(0) && bench.cancel(42) && bench.cancel(99));
    let expected: Vec<_> = (1..99).filter(|name| *name != 42).collect();
    assert_eq!(bench.advance(deadline + TICK_NS), expected);
}

#[test]
fn cancel_returns_whether_the_timer_was_pending() {
    let bench = Bench::new(START, 2);
    assert!(!bench.cancel(0));
    bench.set(0, START + 1);
    assert!(bench.cancel(0));
    assert!(!bench.cancel(0));
    assert_eq!(bench.advance(START + HOUR), []);
    bench.set(0, START);
    assert_eq!(bench.advance(START + HOUR), [0]);
    assert!(!bench.cancel(0));
    assert_eq!(bench.wheel.next_deadline(), None);
}

#[test]
fn fire_may_cancel_the_next_timer() {
    let bench = Bench::new(START, 6);
    for name in 0..4 {
        bench.set(name, START + 10 * TICK_NS);
    }
    bench.set(4, START + HOUR);
    bench.set(5, 0);
    bench.advance_with(START + 2 * HOUR, |name| match name {
        5 => assert!(bench.cancel(0)),
        1 => assert!(bench.cancel(2) && bench.cancel(4) && !bench.cancel(1)),
        _ => (),
    });
    assert_eq!(bench.fired.take(), [5, 1, 3]);
    assert!(bench.wheel.is_empty());
}

#[test]
fn late_timer_set_by_fire_fires_at_the_next_advance() {
    let bench = Bench::new(START, 3);
    let now = (START + HOUR).next_multiple_of(TICK_NS);
    bench.set(0, START);
    bench.set(1, START + 10 * TICK_NS);
    bench.set(2, START + 20 * TICK_NS);
    // Each entry sets itself again: late, for now, and for later.
    let again = [START, now, now + 10 * TICK_NS];
    for _ in 0..3 {
        assert!(bench.advance_with(now, |name| bench.set(name, again[name])) >= 2);
    }
    assert_eq!(bench.fired.take(), [0, 1, 2, 0, 1, 0, 1]);
    assert_eq!(bench.advance(again[2] + TICK_NS), [0, 1, 2]);
}

#[test]
fn fire_may_free_its_entry() {
    let wheel = Wheel::new(START);
    for after in [0, 1, 100, HOUR] {
        let entry = Box::new(TimerEntry::new(std::ptr::null()));
        let entry = NonNull::from(Box::leak(entry));
        // SAFETY: the entry is freed below, after it has fired.
        unsafe { wheel.insert(entry, START + after) };
    }
    let fired = wheel.advance(START + 2 * HOUR, |entry| {
        // SAFETY: it came from a box, and by rule 4 the wheel does not access it any more.
        drop(unsafe { Box::from_raw(entry.as_ptr()) });
    });
    assert_eq!(fired, 4);
}

#[test]
fn panic_in_fire_leaves_the_other_timers_pending() {
    let now = START.next_multiple_of(TICK_NS) + HOUR;
    let bench = Bench::new(START, 5);
    // Two are late, two are due now.
    for (name, deadline) in [0, 0, START + 1, now, now].into_iter().enumerate() {
        bench.set(name, deadline);
    }
    let panics = || {
        let panics = || bench.advance_with(now, |_| std::panic::resume_unwind(Box::new(())));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        bench.fired.take()
    };
    assert_eq!(panics(), [0]);
    assert_eq!(panics(), [2]);
    assert_eq!(panics(), [1]);
    assert_eq!(panics(), [3]);
    assert_eq!(bench.wheel.len(), 1);
    assert_eq!(bench.advance(now), [4]);
}

#[test]
fn clock_that_goes_back_fires_nothing() {
    let bench = Bench::new(START, 2);
    assert_eq!(bench.advance(START + HOUR), []);
    bench.set(0, START + HOUR + 10 * TICK_NS);
    bench.set(1, START + HOUR / 2);
    assert_eq!(bench.advance(0), [1]);
    assert_eq!(bench.advance(START + HOUR), []);
    assert_eq!(bench.advance(START + HOUR + 11 * TICK_NS), [0]);
}

/// Sleeps until `next_deadline` repeatedly until an entry fires. Returns the number of sleeps.
fn wake_ups(bench: &Bench) -> usize {
    let mut before = 0;
    for slept in 1.. {
        let next = bench.wheel.next_deadline().expect("a timer is pending");
        assert!(next > before, "a wake-up without progress");
        before = next;
        if !bench.advance(next).is_empty() {
            return slept;
        }
    }
    unreachable!()
}

#[test]
fn single_distant_timer_wakes_its_owner_once() {
    for after in [TICK_NS, 5_000_000, HOUR, 24 * HOUR, 100_000 * HOUR] {
        let bench = Bench::new(START, 1);
        bench.set(0, START + after);
        assert_eq!(wake_ups(&bench), 1);
    }
}

#[test]
fn distant_timers_wake_their_owner_once_per_level() {
    for after in [TICK_NS, 5_000_000, HOUR, 24 * HOUR, 100_000 * HOUR] {
        let bench = Bench::new(START, 10);
        for name in 0..10 {
            bench.set(name, START + after + name as u64);
        }
        assert!(wake_ups(&bench) <= LEVELS);
    }
}

#[test]
fn cancelled_timer_does_not_wake_its_owner() {
    let bench = Bench::new(START, 2);
    bench.set(0, START + HOUR);
    let alone = bench.wheel.next_deadline();
    bench.set(1, START + 10 * TICK_NS);
    assert!(bench.wheel.next_deadline() < alone);
    assert!(bench.cancel(1));
    assert_eq!(bench.wheel.next_deadline(), alone);
}

struct Random(crate::supervisor::Random);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.bits() % end
    }

    /// Returns a span; every order of magnitude is equally likely.
    fn span(&mut self) -> u64 {
        self.0.bits() >> self.below(64)
    }
}

/// The reference implementation: a sorted map, and two queues for late timers.
struct Model {
    now: u64,
    set: BTreeMap<(u64, u64), usize>,
    collecting: BTreeMap<u64, usize>,
    late: BTreeMap<u64, usize>,
    inserted: u64,
    random: Random,
    /// The current time, in nanoseconds.
    clock: u64,
}

impl Model {
    fn pending(&self, name: usize) -> bool {
        self.set.values().any(|n| *n == name)
            || self.collecting.values().any(|n| *n == name)
            || self.late.values().any(|n| *n == name)
    }

    fn len(&self) -> usize {
        self.set.len() + self.collecting.len() + self.late.len()
    }

    /// Cancels a timer, or sets it if it was not pending.
    fn change(&mut self, bench: &Bench) {
        let name = self.random.below(bench.entries.len() as u64) as usize;
        if self.pending(name) {
            assert!(bench.cancel(name));
            self.set.retain(|_, n| *n != name);
            self.collecting.retain(|_, n| *n != name);
            self.late.retain(|_, n| *n != name);
            return;
        }
        let span = self.random.span();
        let deadline = match self.random.below(16) {
            0 => self.clock.saturating_sub(span),
            1 => (self.clock / TICK_NS * TICK_NS).saturating_add(span % 3 * TICK_NS),
            _ => self.clock.saturating_add(span),
        };
        bench.set(name, deadline);
        self.inserted += 1;
        let tick = deadline.div_ceil(TICK_NS);
        if tick <= self.now {
            self.collecting.insert(self.inserted, name);
        } else {
            self.set.insert((tick, self.inserted), name);
        }
    }

    fn begin_advance(&mut self, clock: u64) {
        self.clock = clock;
        self.now = clock / TICK_NS;
        assert!(self.late.is_empty());
        std::mem::swap(&mut self.late, &mut self.collecting);
    }

    /// Returns the entry that must fire next in the current `advance`.
    fn fire(&mut self) -> Option<usize> {
        if let Some((_, name)) = self.late.pop_first() {
            return Some(name);
        }
        let next = self.set.first_entry()?;
        (next.key().0 <= self.now).then(|| next.remove())
    }

    fn check(&self, bench: &Bench) {
        assert_eq!(bench.wheel.len(), self.len());
        let next = bench.wheel.next_deadline();
        if !self.collecting.is_empty() {
            assert!(next.is_some_and(|at| at <= self.clock));
        } else if let Some(((tick, _), _)) = self.set.first_key_value() {
            let at = tick.saturating_mul(TICK_NS);
            let ended = self.clock > u64::MAX - TICK_NS;
            assert!(next.is_some_and(|next| (self.clock < next || ended) && next <= at));
        } else {
            assert_eq!(next, None);
        }
    }
}

fn against_the_model(seed: u64, entries: usize, steps: usize) {
    let mut random = Random(crate::supervisor::Random(seed));
    let clock = random.span();
    let bench = Bench::new(clock, entries);
    let model = RefCell::new(Model {
        now: clock / TICK_NS,
        set: BTreeMap::new(),
        collecting: BTreeMap::new(),
        late: BTreeMap::new(),
        inserted: 0,
        random,
        clock,
    });
    for _ in 0..steps {
        let mut m = model.borrow_mut();
        for _ in 0..m.random.below(8) {
            m.change(&bench);
            m.check(&bench);
        }
        let clock = match m.random.below(4) {
            0 => bench.wheel.next_deadline().unwrap_or(m.clock).max(m.clock),
            1 => m.clock.saturating_add(m.random.below(3 * TICK_NS)),
            // Limited, so that the clock does not reach its end at once.
            _ => m.clock.saturating_add(m.random.span() >> 12),
        };
        m.begin_advance(clock);
        drop(m);
        bench.advance_with(clock, |name| {
            let mut m = model.borrow_mut();
            assert_eq!(m.fire(), Some(name), "seed {seed}");
            for _ in 0..m.random.below(3) {
                m.change(&bench);
            }
        });
        let mut m = model.borrow_mut();
        assert_eq!(m.fire(), None, "seed {seed}");
        m.check(&bench);
    }
}

#[test]
fn wheel_matches_a_sorted_map() {
    let (seeds, steps) = if cfg!(miri) { (4, 40) } else { (200, 1_000) };
    for seed in 0..seeds {
        against_the_model(seed, 1 + 10 * (seed as usize % 5), steps);
    }
}
