//! Tests that every ingress passes the workload's checks, and that a faulty one is detected.

use std::sync::mpsc;

use super::*;
use crate::workloads::submit::path::{Opened, Refused};
use crate::workloads::submit::subjects::SUBJECTS;

fn load(producers: usize, each: u64) -> Load {
    Load {
        producers,
        each,
        settle: Duration::from_secs(30),
    }
}

#[test]
fn every_subject_runs_every_request_once_and_in_order() {
    for subject in SUBJECTS.iter() {
        for producers in [1, 3] {
            let taken = (subject.take)(&load(producers, 500));
            let sample = taken.unwrap_or_else(|problem| {
                panic!("{} {}: {problem}", subject.name, subject.variant)
            });
            assert!(sample.ns > 0.0);
            assert!(sample.metrics["completed_per_s"] > 0.0);
        }
    }
}

#[test]
fn more_producers_than_shards_share_them() {
    for subject in SUBJECTS.iter().filter(|s| s.name != "global_lock") {
        (subject.take)(&load(20, 100)).unwrap();
    }
}

#[test]
fn the_always_rule_wakes_once_a_request() {
    for subject in SUBJECTS.iter().filter(|s| s.variant == "always") {
        let sample = (subject.take)(&load(2, 200)).unwrap();
        assert_eq!(sample.metrics["items_per_wake"], 1.0, "{}", subject.name);
    }
}

/// An ingress with one fault, which it applies to the `n`th request.
struct Wrong<const FAULT: u8>(mpsc::Sender<Option<Submitted>>);

const LOST: u8 = 0;
const TWICE: u8 = 1;
const SWAPPED: u8 = 2;
const REFUSED: u8 = 3;

impl<const FAULT: u8> Ingress for Wrong<FAULT> {
    type Entry = (mpsc::Sender<Option<Submitted>>, u64);
    type Exit = mpsc::Receiver<Option<Submitted>>;

    fn open(producers: usize) -> Opened<Self, Self::Entry, Self::Exit> {
        let (sender, receiver) = mpsc::channel();
        let entries = (0..producers).map(|_| (sender.clone(), 0)).collect();
        Ok((Self(sender), entries, receiver))
    }

    unsafe fn submit(&self, entry: &mut Self::Entry, request: Submitted) -> Result<bool, Refused> {
        entry.1 += 1;
        match FAULT {
            REFUSED if entry.1 == 7 => return Err(Refused),
            LOST if entry.1 == 7 => return Ok(false),
            _ => {}
        }
        entry
            .0
            .send(Some(request))
            .map(|()| false)
            .map_err(|_| Refused)
    }

    fn consume(&self, exit: Self::Exit, mut run: impl FnMut(&Request)) {
        let mut count = 0;
        let mut run = |Submitted(request): Submitted| {
            // SAFETY: requests do not change until the consumer is gone.
            run(unsafe { request.as_ref() });
        };
        while let Ok(Some(request)) = exit.recv() {
            count += 1;
            match FAULT {
                SWAPPED if count == 7 => {
                    let Ok(Some(next)) = exit.recv() else {
                        return;
                    };
                    run(next);
                    run(request);
                }
                TWICE if count == 7 => {
                    run(request);
                    run(request);
                }
                _ => run(request),
            }
        }
    }

    fn stop(&self) {
        self.0.send(None).expect("the consumer waits for it");
    }
}

fn caught<const FAULT: u8>() -> String {
    let load = Load {
        settle: Duration::from_millis(50),
        ..load(1, 100)
    };
    match take::<Wrong<FAULT>>(&load) {
        Err(Problem::Check(text)) => text,
        other => panic!("it was not caught: {other:?}"),
    }
}

#[test]
fn a_request_that_never_comes_is_missing_after_the_settle_time() {
    assert_eq!(
        caught::<LOST>(),
        "1 of 100 requests were not run 50ms after the last submission"
    );
}

#[test]
fn a_callback_that_runs_twice_is_caught() {
    assert_eq!(caught::<TWICE>(), "of 100 requests 1 run twice");
}

#[test]
fn requests_that_overtake_each_other_are_caught() {
    let text = caught::<SWAPPED>();
    assert!(text.contains("out of their producer's order"), "{text}");
}

#[test]
fn a_submission_that_fails_is_caught() {
    assert_eq!(caught::<REFUSED>(), "1 of 100 submissions failed");
}
