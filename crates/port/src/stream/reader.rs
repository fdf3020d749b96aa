//! The caller's end of a stream, in Rust.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_wire::Decode;

use crate::client::Opened;
use crate::code::{Code, Failure};
use crate::stream::{OpenBatch, StreamCore};

/// Records to a batch where the reader takes them one by one.
const BATCH: u32 = 256;

/// Reads a stream: record by record as an `Iterator` or a `futures::Stream`, or in batches, in place. Dropping it
/// closes the stream.
#[derive(Debug)]
pub struct StreamReader<T> {
    core: Arc<StreamCore>,
    /// What the iterator is in the middle of, and how far.
    current: Option<(OpenBatch, u32)>,
    /// The iterator has given its error; nothing follows it, or who skips errors would go round for ever.
    failed: bool,
    /// The core was passed on; it is not this reader's to close.
    passed_on: bool,
    record: PhantomData<fn() -> T>,
    /// On the caller's side: keeps the instance open.
    opened: Option<Arc<Opened>>,
}

/// Some records of a stream, in place. Given back when dropped.
#[derive(Debug)]
pub struct Batch<'a, T> {
    core: &'a StreamCore,
    open: OpenBatch,
    record: PhantomData<fn() -> T>,
}

impl<T: Decode> Batch<'_, T> {
    /// How many records; never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        self.open.count
    }

    /// The number of the first record, from 0.
    pub fn first_sequence(&self) -> u64 {
        self.open.first_sequence
    }

    /// Records that were lost right before the first.
    pub fn lost_before(&self) -> u64 {
        self.open.lost_before
    }

    /// The records, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T::View<'_>> {
        let bytes = self.open.segment.read(self.open.from, self.open.count);
        let (first, stride) = (self.open.first(), self.open.stride());
        (0..self.open.count).map(move |i| T::view(bytes, first + i * stride))
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        // Closed meanwhile: then there is nothing to give back.
        let _ = self.core.release(self.open.count);
    }
}

/// `None` is the regular end.
fn ending<B>(result: Result<B, (Failure, bool)>) -> Result<Option<B>, Failure> {
    match result {
        Ok(batch) => Ok(Some(batch)),
        Err((failure, true)) if failure.code == Code::Closed => Ok(None),
        Err((failure, _)) => Err(failure),
    }
}

impl<T: Decode> StreamReader<T> {
    pub(crate) fn new(core: Arc<StreamCore>) -> Self {
        Self {
            core,
            current: None,
            failed: false,
            passed_on: false,
            record: PhantomData,
            opened: None,
        }
    }

    pub(crate) fn opened(core: Arc<StreamCore>, opened: Arc<Opened>) -> Self {
        let mut reader = Self::new(core);
        reader.opened = Some(opened);
        reader
    }

    pub(crate) fn into_core(mut self) -> Arc<StreamCore> {
        self.passed_on = true;
        Arc::clone(&self.core)
    }

    /// The next batch, of at most `max` records; waits until `deadline` ([`thalweg_queue::clock`]; 0: not at all, `u64::MAX`: for ever).
    /// `None`: the stream has ended.
    ///
    /// # Errors
    /// How else the stream ended; `would_park`, `timed_out`, `interrupted`.
    pub fn next_batch(&mut self, max: u32, deadline: u64) -> Result<Option<Batch<'_, T>>, Failure> {
        self.let_go();
        let open = ending(self.core.acquire(max, deadline))?;
        Ok(open.map(|open| Batch {
            core: &self.core,
            open,
            record: PhantomData,
        }))
    }

    fn let_go(&mut self) {
        if let Some((open, _)) = self.current.take() {
            // Closed meanwhile: then there is nothing to give back.
            let _ = self.core.release(open.count);
        }
    }

    /// The iterator's last item.
    fn fail(&mut self, failure: Failure) -> Option<Result<T, Failure>> {
        (!std::mem::replace(&mut self.failed, true)).then_some(Err(failure))
    }

    /// The next record of the batch that is open.
    fn next_of_current(&mut self) -> Option<T> {
        let (open, done) = self.current.as_mut()?;
        if *done == open.count {
            self.let_go();
            return None;
        }
        let at = open.first() + *done * open.stride();
        let bytes = open.segment.read(open.from + *done, 1);
        *done += 1;
        Some(T::owned(T::view(bytes, at)))
    }
}

impl<T: Decode> Iterator for StreamReader<T> {
    type Item = Result<T, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.next_of_current() {
                return Some(Ok(record));
            }
            match ending(self.core.acquire(BATCH, u64::MAX)) {
                Ok(Some(open)) => self.current = Some((open, 0)),
                Ok(None) => return None,
                Err(failure) if failure.code == Code::Interrupted => {}
                Err(failure) => return self.fail(failure),
            }
        }
    }
}

impl<T: Decode> futures_core::Stream for StreamReader<T> {
    type Item = Result<T, Failure>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(record) = this.next_of_current() {
                return Poll::Ready(Some(Ok(record)));
            }
            match ending(this.core.try_acquire(BATCH)) {
                Ok(Some(open)) => this.current = Some((open, 0)),
                Ok(None) => return Poll::Ready(None),
                Err(failure) if failure.code == Code::WouldPark => {
                    if !this.core.arm(context.waker().clone()) {
                        return Poll::Pending;
                    }
                }
                Err(failure) => return Poll::Ready(this.fail(failure)),
            }
        }
    }
}

impl<T> Drop for StreamReader<T> {
    fn drop(&mut self) {
        if !self.passed_on {
            self.core.close();
        }
    }
}
