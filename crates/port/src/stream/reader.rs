//! The caller's end of a stream, in Rust.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_wire::Decode;

use crate::code::{Code, Failure};
use crate::stream::counts::{Counts, Reason};
use crate::stream::outcome::{StreamError, Untyped, typed_error};
use crate::stream::{Event, Guard, OpenBatch, Stats, StreamCore, Subscription, Views};

/// Reads a stream: record by record as an `Iterator` or a `futures::Stream`, or in batches, in
/// place. Dropping it closes the stream.
///
/// The end of the iterator, or `None`, is the regular end: every writer has finished. Any other
/// outcome is an error after the written records: a [`Failure`], or, for a function `->
/// result<stream<T>, E>`, a [`CallError`](crate::CallError) with its error type.
///
/// ```
/// use thalweg_port::{CallError, StreamReader};
///
/// fn print(names: StreamReader<String, u32>) {
///     for name in names {
///         match name {
///             Ok(name) => println!("{name}"),
///             Err(CallError::Service(code)) => println!("the service failed with {code}"),
///             Err(CallError::Ended(why)) => println!("the stream is not complete: {why}"),
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct StreamReader<T, E = Untyped> {
    core: Arc<StreamCore>,
    /// All records that the segment had when it was acquired. Reading them takes no lock.
    window: Option<OpenBatch>,
    /// Number of records of the window that were read.
    consumed: u32,
    /// The iterator has returned its error. It returns nothing after it, so that a loop that skips
    /// errors ends.
    has_failed: bool,
    /// The core was moved out, so this reader does not close it.
    is_moved: bool,
    types: PhantomData<fn() -> (T, E)>,
    /// Keeps the instance open, on the caller's side.
    guard: Option<Arc<dyn Guard>>,
}

/// A batch: some records of a stream, in place. Dropping it releases them.
#[derive(Debug)]
pub struct Batch<'a, T, E = Untyped> {
    reader: &'a mut StreamReader<T, E>,
    count: u32,
}

impl<T, E> Batch<'_, T, E> {
    fn window(&self) -> &OpenBatch {
        let window = self.reader.window.as_ref();
        window.expect("a batch borrows the window")
    }

    /// Number of records; never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Sequence number of the first record, from 0.
    pub fn first_sequence(&self) -> u64 {
        self.window().first_sequence + u64::from(self.reader.consumed)
    }

    /// Number of records that are missing directly before the first one.
    pub fn lost_before(&self) -> u64 {
        if self.reader.consumed == 0 {
            self.window().lost_before
        } else {
            0
        }
    }

    /// Whether it is a record of the control lane:
    /// [`StreamWriter::control`](crate::StreamWriter::control). Control records have their own
    /// sequence numbers.
    pub fn is_control(&self) -> bool {
        self.window().control
    }

    /// Why records are missing before the first one. If there are several reasons, the first one.
    /// `None` if none are missing.
    pub fn lost_reason(&self) -> Option<Reason> {
        if self.reader.consumed == 0 {
            self.window().reason
        } else {
            None
        }
    }
}

impl<T: Decode, E> Batch<'_, T, E> {
    /// The records, in order.
    #[inline]
    pub fn iter(&self) -> Views<'_, T> {
        self.window().read(self.reader.consumed, self.count)
    }
}

impl<T, E> Drop for Batch<'_, T, E> {
    fn drop(&mut self) {
        self.reader.consumed += self.count;
        self.reader.release_if_consumed();
    }
}

/// `None` is the regular end.
fn none_at_end<B>(result: Result<B, (Failure, bool)>) -> Result<Option<B>, Failure> {
    match result {
        Ok(batch) => Ok(Some(batch)),
        Err((failure, true)) if failure.code == Code::Closed => Ok(None),
        Err((failure, _)) => Err(failure),
    }
}

impl<T, E> StreamReader<T, E> {
    fn release_if_consumed(&mut self) {
        if let Some(window) = &self.window
            && window.count == self.consumed
        {
            self.window = None;
            let consumed = std::mem::take(&mut self.consumed);
            // If the stream was closed in the meantime, there is nothing to release.
            let _ = self.core.release(consumed);
        }
    }

    /// Counts of the stream's records so far. Records that this reader has acquired, up to a
    /// segment, count as delivered.
    pub fn counts(&self) -> Counts {
        self.core.counts()
    }

    /// Statistics of all streams of this client's method since the client was opened.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Number of records that are missing after the last one, and why. Known once the last record
    /// was delivered.
    pub fn lost_at_end(&self) -> (u64, Option<Reason>) {
        self.core.lost_at_end()
    }
}

impl<T: Decode, E: StreamError> StreamReader<T, E> {
    pub(crate) fn new(core: Arc<StreamCore>) -> Self {
        Self {
            core,
            window: None,
            consumed: 0,
            has_failed: false,
            is_moved: false,
            types: PhantomData,
            guard: None,
        }
    }

    pub(crate) fn with_guard(core: Arc<StreamCore>, guard: Arc<dyn Guard>) -> Self {
        let mut reader = Self::new(core);
        reader.guard = Some(guard);
        reader
    }

    pub(crate) fn into_core(mut self) -> Arc<StreamCore> {
        self.is_moved = true;
        Arc::clone(&self.core)
    }

    /// The next batch, of at most `max` records. Waits until `deadline` ([`thalweg_queue::clock`];
    /// 0: do not wait, `u64::MAX`: no deadline). `None`: the stream has ended regularly.
    ///
    /// # Errors
    /// Another outcome of the stream; for a function `-> result<stream<T>, E>` also the service's
    /// own error. `would_park`, `timed_out`, `interrupted`. `argument`: `max` is 0.
    #[inline]
    pub fn next_batch(
        &mut self,
        max: u32,
        deadline: u64,
    ) -> Result<Option<Batch<'_, T, E>>, E::Ended> {
        if max == 0 {
            return Err(Code::Argument.because("a batch of 0 records").into());
        }
        let window = match &self.window {
            Some(window) => window,
            None => match none_at_end(self.core.acquire_exclusive(u32::MAX, deadline)) {
                Ok(Some(window)) => &*self.window.insert(window),
                Ok(None) => return Ok(None),
                Err(why) => return Err(typed_error::<E>(&self.core, why)),
            },
        };
        let count = (window.count - self.consumed).min(max);
        Ok(Some(Batch {
            reader: self,
            count,
        }))
    }

    /// Passes the records to a callback, on the threads that write them, one call at a time. The
    /// last call reports the outcome of the stream. `Break` closes the stream, and so does a panic
    /// in the callback. Records that are already in the stream, and the outcome, are delivered by
    /// an actor of the service's runtime.
    ///
    /// A writer waits while its callback runs, so pass long work to a queue.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use thalweg_port::stream::{Event, Subscription};
    /// use thalweg_port::{Failure, StreamReader};
    ///
    /// fn print(reader: StreamReader<u64>) -> Result<Subscription<u64>, Failure> {
    ///     reader.subscribe(|event| {
    ///         if let Event::Records(records) = event {
    ///             records.iter().for_each(|number| println!("{number}"));
    ///         }
    ///         ControlFlow::Continue(())
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// `argument`: this reader has acquired records that were not read. The stream is then closed.
    pub fn subscribe(
        mut self,
        callback: impl FnMut(Event<'_, T, E>) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Subscription<T, E>, Failure> {
        let guard = self.guard.take();
        Subscription::new(self.into_core(), guard, callback)
    }

    /// The stream's own file descriptor, for an event loop. It becomes readable with the next
    /// record or the end, after [`arm`](Self::arm) returned `false`.
    ///
    /// # Errors
    /// `overloaded`: no file descriptor.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Failure> {
        self.core.fd()
    }

    /// Arms [`fd`](Self::fd), which then becomes readable as soon as there are records, or at the
    /// end of the stream. Returns `true`, and arms nothing, if the stream is already readable.
    ///
    /// # Errors
    /// `overloaded`: no file descriptor.
    pub fn arm(&mut self) -> Result<bool, Failure> {
        match self.window {
            Some(_) => Ok(true),
            None => self.core.arm_fd(),
        }
    }

    /// Creates an additional reader of the same stream, for another thread. It has its own
    /// position, overflow and counts. It begins with the records that are written from now on, with
    /// sequence number 0. Under the policies `block` and `fail`, the slowest reader limits the
    /// writers. Under the other policies, each reader loses records separately, up to a segment at
    /// a time. The writers continue until all readers are gone.
    ///
    /// # Errors
    /// `stale`: this reader is closed.
    pub fn tee(&self) -> Result<Self, Failure> {
        let mut reader = Self::new(self.core.tee()?);
        reader.guard.clone_from(&self.guard);
        Ok(reader)
    }

    /// The last item of the iterator.
    fn fail(&mut self, failure: Failure) -> Option<Result<T, E::Ended>> {
        let is_first = !std::mem::replace(&mut self.has_failed, true);
        is_first.then(|| Err(typed_error::<E>(&self.core, failure)))
    }

    /// The next record of the window.
    fn next_in_window(&mut self) -> Option<T> {
        let window = self.window.as_ref()?;
        let record = T::owned(window.read::<T>(self.consumed, 1).next()?);
        self.consumed += 1;
        self.release_if_consumed();
        Some(record)
    }
}

impl<T: Decode, E: StreamError> Iterator for StreamReader<T, E> {
    type Item = Result<T, E::Ended>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.next_in_window() {
                return Some(Ok(record));
            }
            match none_at_end(self.core.acquire_exclusive(u32::MAX, u64::MAX)) {
                Ok(Some(window)) => self.window = Some(window),
                Ok(None) => return None,
                Err(failure) if failure.code == Code::Interrupted => {}
                Err(failure) => return self.fail(failure),
            }
        }
    }
}

impl<T: Decode, E: StreamError> futures_core::Stream for StreamReader<T, E> {
    type Item = Result<T, E::Ended>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(record) = this.next_in_window() {
                return Poll::Ready(Some(Ok(record)));
            }
            match none_at_end(this.core.try_acquire(u32::MAX)) {
                Ok(Some(window)) => this.window = Some(window),
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

impl<T, E> Drop for StreamReader<T, E> {
    fn drop(&mut self) {
        if self.is_moved {
            return;
        }
        let unseen = self
            .window
            .take()
            .filter(|window| !window.control)
            .map_or(0, |window| window.count - self.consumed);
        self.core.close_unread(unseen.into());
    }
}
