//! Stream and future parameters: the caller's writing end and the service's reading end.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use thalweg_wire::{Bytes, Checker, Decode, Encode, Encoder, Handle, Malformed, Shape, message};

use crate::code::{Code, Failure};
use crate::end_stream::EndStream;
use crate::handles::{self, Kind};
use crate::nested::DropCause;
use crate::stream::upstream_core::UpstreamCore;

/// The caller's end of a stream parameter. If it is dropped without [`end`](Self::end), the service
/// gets `cancelled` after the sent elements.
#[derive(Debug)]
pub struct UpstreamWriter<T> {
    core: Arc<UpstreamCore>,
    /// Memory for the next element's message.
    buffer: RefCell<Vec<u8>>,
    element: PhantomData<fn(T)>,
}

impl<T: Decode> UpstreamWriter<T> {
    /// Sends one element. Waits while 256 elements, or 1 MiB of them, are unread.
    ///
    /// # Errors
    /// The outcome of the stream, if it has ended: `closed` if the service has closed it;
    /// `cancelled`, `timed_out` or `guest_panicked` like the call that it belongs to. `argument`:
    /// the element is larger than 64 MiB. `interrupted`. `would_park` where an actor must not wait.
    pub fn send<V: Encode<As = T> + ?Sized>(&self, element: &V) -> Result<(), Failure> {
        self.send_until(element, u64::MAX)
    }

    /// Like [`send`](Self::send), but waits at most until `deadline` ([`thalweg_queue::clock`]; 0:
    /// do not wait).
    ///
    /// # Errors
    /// The errors of [`send`](Self::send), and `timed_out`; `would_park` if it does not wait.
    pub fn send_until<V: Encode<As = T> + ?Sized>(
        &self,
        element: &V,
        deadline: u64,
    ) -> Result<(), Failure> {
        let mut buffer = self.buffer.take();
        buffer.clear();
        let message = message::encode(element, T::HASH, buffer)
            .map_err(|error| Code::Argument.because(format!("the element: {error}")))?;
        let sent = self.core.send_message(&message, deadline);
        self.buffer.replace(message);
        sent
    }

    /// For an executor: ready when there is capacity for one more element, or for the element that
    /// was refused last.
    ///
    /// # Errors
    /// The outcome of the stream, if it has ended.
    pub fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        self.core.poll_room(context)
    }

    /// Ends the stream regularly.
    ///
    /// # Errors
    /// The earlier outcome if the stream has already ended: `closed` if the service has closed it.
    pub fn end(self) -> Result<(), Failure> {
        self.core.finish()
    }
}

impl<T> Drop for UpstreamWriter<T> {
    fn drop(&mut self) {
        self.core.abandon();
    }
}

/// A stream parameter. The caller creates it together with its writer and passes it to a function.
/// The service reads it as an `Iterator` in an actor or on a thread, or as a `futures::Stream`. If
/// it is dropped, the writer gets `closed`.
///
/// ```
/// use thalweg_port::Upstream;
///
/// let (writer, mut numbers) = Upstream::<u64>::pair()?;
/// writer.send(&7u64)?;
/// writer.end()?;
/// assert_eq!(numbers.next(), Some(Ok(7)));
/// assert_eq!(numbers.next(), None);
/// # Ok::<(), thalweg_port::Failure>(())
/// ```
pub struct Upstream<T> {
    /// The handle in the table, until a call takes the stream.
    handle: u64,
    given: AtomicBool,
    /// `None`: it came with a message and was not looked up yet.
    core: Option<Arc<UpstreamCore>>,
    /// The iterator has returned its error.
    failed: bool,
    element: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Upstream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({:#x})", self.handle)
    }
}

impl<T> Upstream<T> {
    fn new(handle: u64, core: Option<Arc<UpstreamCore>>) -> Self {
        Self {
            handle,
            given: AtomicBool::new(false),
            core,
            failed: false,
            element: PhantomData,
        }
    }

    fn view(&self) -> UpstreamView<'_, T> {
        let given = self.given.load(Ordering::Relaxed);
        UpstreamView {
            handle: Handle(if given { 0 } else { self.handle }),
            stream: Some(self),
        }
    }
}

impl<T: Decode> Upstream<T> {
    /// Creates a stream and its writer.
    ///
    /// # Errors
    /// `overloaded`: the maximum number of handles is open.
    pub fn pair() -> Result<(UpstreamWriter<T>, Self), Failure> {
        Self::open(false)
    }

    fn open(is_future: bool) -> Result<(UpstreamWriter<T>, Self), Failure> {
        let core = UpstreamCore::new(T::HASH, is_future);
        let handle = handles::insert(Kind::Upstream, Arc::clone(&core))?;
        let writer = UpstreamWriter {
            core: Arc::clone(&core),
            buffer: RefCell::default(),
            element: PhantomData,
        };
        Ok((writer, Self::new(handle, Some(core))))
    }

    /// Takes the stream of a message's handle out of the table.
    ///
    /// # Errors
    /// `stale`. `argument`: the handle is not a stream, or the stream has elements of another type.
    pub(crate) fn look_up(mut self) -> Result<(Self, Arc<UpstreamCore>), Failure> {
        let found = handles::find(self.handle)?.get::<UpstreamCore>(Kind::Upstream);
        let core = found.map_err(|other| {
            // The handle does not belong to this value, so dropping it must not close the handle.
            *self.given.get_mut() = true;
            Code::Argument.because(format!(
                "a handle is {}, not a stream to read",
                other.name()
            ))
        })?;
        if core.layout() & LOW != T::HASH & LOW {
            return Err(Code::Argument.because("the stream has elements of another type"));
        }
        handles::remove(self.handle)?;
        self.handle = 0;
        self.core = Some(Arc::clone(&core));
        Ok((self, core))
    }

    /// The next element. Waits until `deadline` ([`thalweg_queue::clock`]; 0: do not wait,
    /// `u64::MAX`: no deadline). `None`: the stream has ended regularly.
    ///
    /// # Errors
    /// Another outcome of the stream: `cancelled` if the caller dropped it, `argument` for a
    /// malformed element, or the outcome of the call. `would_park`, `timed_out`, `interrupted`.
    pub fn next_until(&mut self, deadline: u64) -> Result<Option<T>, Failure> {
        self.core()?.read(deadline)
    }

    fn core(&self) -> Result<&Arc<UpstreamCore>, Failure> {
        let unread = || Code::Argument.because("the stream was not taken from its call");
        self.core.as_ref().ok_or_else(unread)
    }

    /// The item of the iterator. An error is the last item.
    fn item(&mut self, next: Result<Option<T>, Failure>) -> Option<Result<T, Failure>> {
        match next {
            Ok(element) => element.map(Ok),
            Err(why) => (!std::mem::replace(&mut self.failed, true)).then_some(Err(why)),
        }
    }
}

/// A message contains the low half of its layout's hash.
const LOW: u64 = u32::MAX as u64;

impl<T: Decode> Iterator for Upstream<T> {
    type Item = Result<T, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_until(u64::MAX) {
                Err(why) if why.code == Code::Interrupted => {}
                next => return self.item(next),
            }
        }
    }
}

impl<T: Decode> futures_core::Stream for Upstream<T> {
    type Item = Result<T, Failure>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = match this.core() {
            Ok(core) => core.try_read(Some(context.waker().clone())),
            Err(why) => Err(why),
        };
        match next {
            Err(why) if why.code == Code::WouldPark => Poll::Pending,
            next => Poll::Ready(this.item(next)),
        }
    }
}

impl<T> Drop for Upstream<T> {
    fn drop(&mut self) {
        if *self.given.get_mut() {
            return;
        }
        if self.handle != 0 {
            // If it was already closed, the handle is stale and nothing is left to close.
            let _ = handles::close_handle(self.handle);
        } else if let Some(core) = &self.core {
            match DropCause::now(core.call_handle()) {
                DropCause::OwnPanic => {
                    core.end(Code::GuestPanicked.because("the service panicked while it read"));
                }
                DropCause::OtherPanic(why) => core.end(why),
                DropCause::Intended => {}
            }
            core.close();
        }
    }
}

/// A view of an [`Upstream`] in a message.
pub struct UpstreamView<'a, T> {
    handle: Handle,
    stream: Option<&'a Upstream<T>>,
}

impl<T> Clone for UpstreamView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for UpstreamView<'_, T> {}

impl<T> fmt::Debug for UpstreamView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamView({:#x})", self.handle.0)
    }
}

impl<T> PartialEq for UpstreamView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle
    }
}

impl<T: 'static> Encode for UpstreamView<'_, T> {
    type As = Upstream<T>;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.handle.encode(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        if let Some(stream) = self.stream.filter(|_| given) {
            stream.given.store(true, Ordering::Relaxed);
        }
        1
    }
}

impl<T: 'static> Encode for Upstream<T> {
    type As = Self;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.view().encode(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        self.view().handles(given)
    }
}

impl<T: 'static> Decode for Upstream<T> {
    const SIZE: u32 = Handle::SIZE;
    const ALIGN: u32 = Handle::ALIGN;
    const SHAPE: Shape = Handle::SHAPE;
    const DEPTH: u32 = Handle::DEPTH;
    const HAS_HANDLES: bool = true;

    type View<'a> = UpstreamView<'a, T>;

    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        Handle::check(from, at)
    }

    fn view<'a>(from: Bytes<'a>, at: u32) -> UpstreamView<'a, T> {
        UpstreamView {
            handle: Handle::view(from, at),
            stream: None,
        }
    }

    fn owned(view: UpstreamView<'_, T>) -> Self {
        Self::new(view.handle.0, None)
    }

    fn as_view(&self) -> UpstreamView<'_, T> {
        self.view()
    }
}

/// The caller's end of a future parameter. It sets the value once. If it is dropped without a
/// value, the service gets `cancelled`.
#[derive(Debug)]
pub struct UpstreamFutureWriter<T>(UpstreamWriter<T>);

impl<T: Decode> UpstreamFutureWriter<T> {
    /// Sets the value. Never waits.
    ///
    /// # Errors
    /// `closed`: the service no longer waits for it. Another outcome, if the future has already
    /// ended. `argument`: the value is larger than 64 MiB.
    pub fn set<V: Encode<As = T> + ?Sized>(self, value: &V) -> Result<(), Failure> {
        self.0.send_until(value, 0)
    }
}

/// A future parameter. The service waits for it in an actor or on a thread, or awaits it.
#[derive(Debug)]
pub struct UpstreamFuture<T>(Upstream<T>);

/// The outcome of a stream that ended without its single element. Only a host that violates the
/// protocol can cause it.
fn no_value() -> Failure {
    Code::Cancelled.because("the caller ended the future without a value")
}

impl<T: Decode> UpstreamFuture<T> {
    /// Creates a future and its writer.
    ///
    /// # Errors
    /// The errors of [`Upstream::pair`].
    pub fn pair() -> Result<(UpstreamFutureWriter<T>, Self), Failure> {
        let (writer, stream) = Upstream::open(true)?;
        Ok((UpstreamFutureWriter(writer), Self(stream)))
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// `cancelled`: the caller set no value. The outcome of the call. `would_park`.
    pub fn wait(mut self) -> Result<T, Failure> {
        self.0.next().unwrap_or_else(|| Err(no_value()))
    }

    /// The underlying stream, for a message.
    pub fn as_stream(&self) -> &Upstream<T> {
        &self.0
    }
}

impl<T> From<Upstream<T>> for UpstreamFuture<T> {
    fn from(stream: Upstream<T>) -> Self {
        Self(stream)
    }
}

impl<T: Decode> Future for UpstreamFuture<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        use futures_core::Stream;
        let next = Pin::new(&mut self.get_mut().0).poll_next(context);
        next.map(|value| value.unwrap_or_else(|| Err(no_value())))
    }
}
