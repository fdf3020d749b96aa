//! Actors that report their end to the actor that spawned them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::channel::Sender;
use crate::exit::Signal;
use crate::join::JoinHandle;
use crate::reason::JoinError;
use crate::task::OnShortage;
use crate::{wait, worker};

/// Spawns an actor that reports its end to `supervisor`. This does not wait. An actor that ends
/// normally costs one message. If no stack is free, the actor starts when one is returned.
///
/// ```
/// use thalweg_runtime::{Signal, channel, run, spawn_under};
///
/// run(|| {
///     let (supervisor, ends) = channel();
///     let mut tries = 0;
///     loop {
///         tries += 1;
///         let child = spawn_under(supervisor.clone(), move || assert_eq!(tries, 3, "not yet"));
///         match ends.recv() {
///             Ok(Signal::Panic(id, panic)) => {
///                 assert_eq!(id, child.id());
///                 assert!(panic.message().is_some_and(|text| text.contains("not yet")));
///             }
///             Ok(_) => break,
///             Err(_) => unreachable!("we have a sender ourselves"),
///         }
///     }
///     assert_eq!(tries, 3);
/// });
/// ```
///
/// # Panics
/// If the caller is not an actor.
pub fn spawn_under(
    supervisor: Sender<Signal>,
    job: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    let worker = worker::current().expect("spawn_under is for actors");
    let task = worker.spawn(None, OnShortage::Wait, move || {
        let id = wait::current().expect("the closure runs in an actor");
        let how = catch_unwind(AssertUnwindSafe(job)).map_err(JoinError::from_payload);
        // If the supervisor has ended, the report is dropped.
        let report = || drop(supervisor.send(Signal::of(id, how)));
        match worker::current() {
            // After a burst of spawns, the supervisor receives many reports when it wakes up once.
            Some(worker) => worker.report_end(report),
            None => report(),
        }
    });
    JoinHandle::new(task)
}
