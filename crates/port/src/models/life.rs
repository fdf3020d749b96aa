//! Entering, closing and the last one out.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use thalweg_queue::explore::{large_model, model};

use crate::life::{Life, Outside};

/// What is used inside, read by all, and given up by the last.
struct Place {
    life: Life,
    used: UnsafeCell<()>,
    why: UnsafeCell<u32>,
    /// None of loom's business: how often each happened.
    first: AtomicUsize,
    last: AtomicUsize,
}

// SAFETY: the cells are what the models are about: loom finds a use that is not ordered.
unsafe impl Sync for Place {}
// SAFETY: as above.
unsafe impl Send for Place {}

impl Place {
    /// With this one inside.
    fn new() -> Arc<Self> {
        let life = Life::closed(0);
        assert_eq!(life.renew(), 1);
        Arc::new(Self {
            life,
            used: UnsafeCell::new(()),
            why: UnsafeCell::new(0),
            first: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
        })
    }

    fn leave(&self) {
        self.used.with(|_| ());
        if self.life.leave(1) {
            self.used.with_mut(|_| ());
            self.last.fetch_add(1, Relaxed);
        }
    }

    fn close(&self) {
        if self.life.close() {
            self.first.fetch_add(1, Relaxed);
        }
    }

    fn is_over(&self) {
        assert_eq!((self.first.load(Relaxed), self.last.load(Relaxed)), (1, 1));
    }
}

/// Rule 3: one is the last, once, after everybody's use.
#[test]
fn the_last_one_out_comes_after_all_uses() {
    large_model(|| {
        let place = Place::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let place = place.clone();
                thread::spawn(move || {
                    if place.life.enter_generation(1).is_ok() {
                        place.leave();
                    }
                })
            })
            .collect();
        place.close();
        place.leave();
        for other in others {
            other.join().unwrap();
        }
        place.is_over();
    });
}

/// Rule 2: of an answer, a cancel and a deadline one ends it.
#[test]
fn one_of_three_closes_it() {
    large_model(|| {
        let place = Place::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let place = place.clone();
                place.life.stay();
                thread::spawn(move || {
                    place.close();
                    place.leave();
                })
            })
            .collect();
        place.close();
        place.leave();
        for other in others {
            other.join().unwrap();
        }
        place.is_over();
    });
}

/// Rule 2: who finds it closed reads what its closer wrote.
#[test]
fn what_the_closer_wrote_is_seen_by_who_is_refused() {
    model(|| {
        let place = Place::new();
        let closer = thread::spawn({
            let place = place.clone();
            move || {
                place.why.with_mut(|why| {
                    // SAFETY: nobody reads it before it is closed.
                    unsafe { *why = 7 };
                });
                place.life.close();
            }
        });
        match place.life.enter_below(9) {
            Ok(()) => {}
            Err(why) => {
                assert_eq!(why, Outside::Closed);
                // SAFETY: rule 2, which this model is about.
                assert_eq!(place.why.with(|why| unsafe { *why }), 7);
            }
        }
        closer.join().unwrap();
    });
}

/// Rule 4: who knows an old number never gets at the next use, and the next use begins after the old one's end.
#[test]
fn an_old_number_does_not_enter_the_next_generation() {
    model(|| {
        let place = Place::new();
        let late = thread::spawn({
            let place = place.clone();
            move || {
                if place.life.enter_generation(1).is_ok() {
                    assert_eq!(place.life.generation(), 1);
                    place.used.with(|_| ());
                    return place.life.leave(1);
                }
                false
            }
        });
        place.life.close();
        let last = place.life.leave(1);
        let renew = || {
            place.used.with_mut(|_| ());
            assert_eq!(place.life.renew(), 2);
        };
        if last {
            renew();
        }
        let late = late.join().unwrap();
        assert!(late != last, "one of them was the last");
        if late {
            renew();
        }
        assert_eq!(place.life.enter_generation(1), Err(Outside::Another));
    });
}
