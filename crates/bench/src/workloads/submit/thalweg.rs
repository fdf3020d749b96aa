//! `thalweg`: the channel in its normal form, unbounded like its peers here, with its own way to
//! wait.

use std::sync::{Mutex, PoisonError};

use thalweg_queue::mpsc::{Receiver, Sender, unbounded};

use super::path::{Ingress, Opened, Refused};
use super::request::{Request, Submitted};

/// Requests that the consumer takes at a time, with `recv_batch`.
const BATCH: usize = 256;

/// See the module. It keeps one sender, which closes the channel and has its counts.
#[derive(Debug)]
pub struct Channel(Mutex<Sender<Submitted>>);

impl Ingress for Channel {
    type Entry = Sender<Submitted>;
    type Exit = Receiver<Submitted>;

    fn open(producers: usize) -> Opened<Self, Self::Entry, Self::Exit> {
        let (sender, receiver) = unbounded();
        let entries = (0..producers).map(|_| sender.clone()).collect();
        Ok((Self(Mutex::new(sender)), entries, receiver))
    }

    #[inline]
    unsafe fn submit(&self, entry: &mut Self::Entry, request: Submitted) -> Result<bool, Refused> {
        entry.send(request).map(|()| false).map_err(|_| Refused)
    }

    fn consume(&self, receiver: Self::Exit, mut run: impl FnMut(&Request)) {
        let mut batch = Vec::with_capacity(BATCH);
        while receiver.recv_batch(&mut batch, BATCH).is_ok() {
            for Submitted(request) in batch.drain(..) {
                // SAFETY: the request was submitted and is run only here, so it is alive until
                // `run` returns.
                run(unsafe { request.as_ref() });
            }
        }
    }

    fn stop(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .close();
    }

    fn wakes(&self) -> Option<u64> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(sender.stats().receiver_wakes)
    }
}
