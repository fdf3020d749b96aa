//! `thalweg`: the channel in its normal form, unbounded like its peers here, with its own way to
//! wait.

use std::io;

use thalweg_queue::mpsc::{Receiver, Sender, unbounded};

use super::path::{Consume, Ingress, Refused, Stop, Submit};
use super::request::{Request, Submitted};

/// Requests that the consumer takes at a time, with `recv_batch`.
const BATCH: usize = 256;

/// See the module.
#[derive(Debug)]
pub struct Channel;

/// A producer's end.
#[derive(Debug)]
pub struct ChannelEntry(Sender<Submitted>);

/// The consumer's end.
#[derive(Debug)]
pub struct ChannelExit(Receiver<Submitted>);

impl Ingress for Channel {
    type Submitter = ChannelEntry;
    type Consumer = ChannelExit;

    fn open(producers: usize) -> io::Result<(Vec<ChannelEntry>, ChannelExit, Stop)> {
        let (sender, receiver) = unbounded();
        let entries = (0..producers)
            .map(|_| ChannelEntry(sender.clone()))
            .collect();
        let stop = Box::new(move || sender.close());
        Ok((entries, ChannelExit(receiver), stop))
    }

    fn wakes<'a>(mut submitters: impl Iterator<Item = &'a ChannelEntry>) -> u64 {
        // The channel counts for all submitters together.
        submitters
            .next()
            .map_or(0, |entry| entry.0.stats().receiver_wakes)
    }
}

impl Submit for ChannelEntry {
    #[inline]
    unsafe fn submit(&mut self, request: Submitted) -> Result<(), Refused> {
        self.0.send(request).map_err(|_| Refused)
    }
}

impl Consume for ChannelExit {
    fn consume(self, mut run: impl FnMut(&Request)) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.0.recv_batch(&mut batch, BATCH).is_ok() {
            for Submitted(request) in batch.drain(..) {
                // SAFETY: the request was submitted and is run only here, so it is alive until
                // `run` returns.
                run(unsafe { request.as_ref() });
            }
        }
    }
}
