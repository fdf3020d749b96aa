//! Streams and futures that are parameters: the caller's end, which writes, and the service's, which reads.

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
use crate::handles::{self, Object};
use crate::nested::DropCause;
use crate::stream::upstream_core::{EndStream, UpstreamCore};

/// The caller's end of a stream that is a parameter. Dropped without [`end`](Self::end), the service has `cancelled` after what was sent.
#[derive(Debug)]
pub struct UpstreamWriter<T> {
    core: Arc<UpstreamCore>,
    /// For the next element's message.
    buffer: RefCell<Vec<u8>>,
    element: PhantomData<fn(T)>,
}

impl<T: Decode> UpstreamWriter<T> {
    /// Sends one element. Waits where 256, or 1 MiB of them, were not read.
    ///
    /// # Errors
    /// How the stream ended, if it has: `closed` where the service reads no more, `cancelled`, `timed_out`, `guest_panicked` as the call that it was
    /// given to. `argument`: an element is larger than 64 MiB. `interrupted`; `would_park` where an actor must not wait.
    pub fn send<V: Encode<As = T> + ?Sized>(&self, element: &V) -> Result<(), Failure> {
        self.send_until(element, u64::MAX)
    }

    /// The same, and waits no longer than until `deadline` ([`thalweg_queue::clock`]; 0: not at all).
    ///
    /// # Errors
    /// As [`send`](Self::send), and `timed_out`; `would_park` where it does not wait.
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

    /// For an executor: ready when there is room for one more, or as much as was refused last.
    ///
    /// # Errors
    /// How the stream ended.
    pub fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        self.core.poll_room(context)
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// How it has ended before: `closed` where the service reads no more.
    pub fn end(self) -> Result<(), Failure> {
        self.core.finish()
    }
}

impl<T> Drop for UpstreamWriter<T> {
    fn drop(&mut self) {
        self.core.abandon();
    }
}

/// A stream that is a parameter: the caller makes one, with its writer, and gives it to a function; the service reads it, as an `Iterator` in an actor or on a
/// thread, or as a `futures::Stream`. Dropped, the writer has `closed`.
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
    /// In the table, until a call has it.
    handle: u64,
    given: AtomicBool,
    /// `None`: it came with a message and was not looked up.
    core: Option<Arc<UpstreamCore>>,
    /// The iterator has given its error.
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
    /// A stream, and what writes it.
    ///
    /// # Errors
    /// `overloaded`: as many handles are open as there may be.
    pub fn pair() -> Result<(UpstreamWriter<T>, Self), Failure> {
        Self::open(false)
    }

    fn open(is_future: bool) -> Result<(UpstreamWriter<T>, Self), Failure> {
        let core = UpstreamCore::new(T::HASH, is_future);
        let handle = handles::insert(Object::Upstream(Arc::clone(&core)))?;
        let writer = UpstreamWriter {
            core: Arc::clone(&core),
            buffer: RefCell::default(),
            element: PhantomData,
        };
        Ok((writer, Self::new(handle, Some(core))))
    }

    /// For who has a message's: what its handle names, out of the table.
    ///
    /// # Errors
    /// `stale`; `argument`: it is something else, or has other elements.
    pub(crate) fn look_up(mut self) -> Result<(Self, Arc<UpstreamCore>), Failure> {
        let core = match handles::find(self.handle)? {
            Object::Upstream(core) if core.layout() & LOW == T::HASH & LOW => core,
            Object::Upstream(_) => {
                return Err(Code::Argument.because("the stream has elements of another type"));
            }
            other => {
                // Not this value's to close.
                *self.given.get_mut() = true;
                let why = format!("a handle is {}, not a stream to read", other.kind());
                return Err(Code::Argument.because(why));
            }
        };
        handles::remove(self.handle)?;
        self.handle = 0;
        self.core = Some(Arc::clone(&core));
        Ok((self, core))
    }

    /// The next element; waits until `deadline` ([`thalweg_queue::clock`]; 0: not at all, `u64::MAX`: for ever). `None`: the stream has ended.
    ///
    /// # Errors
    /// How else it ended: `cancelled` where the caller dropped it, `argument` for an element that is malformed, what became of the call. `would_park`, `timed_out`,
    /// `interrupted`.
    pub fn next_until(&mut self, deadline: u64) -> Result<Option<T>, Failure> {
        self.core()?.read(deadline)
    }

    fn core(&self) -> Result<&Arc<UpstreamCore>, Failure> {
        let unread = || Code::Argument.because("the stream was not taken from its call");
        self.core.as_ref().ok_or_else(unread)
    }

    /// What the iterator gives: an error is the last.
    fn item(&mut self, next: Result<Option<T>, Failure>) -> Option<Result<T, Failure>> {
        match next {
            Ok(element) => element.map(Ok),
            Err(why) => (!std::mem::replace(&mut self.failed, true)).then_some(Err(why)),
        }
    }
}

/// A message carries the low half of its layout's hash.
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
            // Stale where it was given up already: nothing to do then.
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

/// An [`Upstream`] in place.
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
    const HOLDS: bool = true;

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

/// The caller's end of a future that is a parameter: says what the value is, once. Dropped without a word, the service has `cancelled`.
#[derive(Debug)]
pub struct UpstreamFutureWriter<T>(UpstreamWriter<T>);

impl<T: Decode> UpstreamFutureWriter<T> {
    /// Says what the value is. Never waits.
    ///
    /// # Errors
    /// `closed`: the service waits for it no more; how else it ended, if it has; `argument`: the value is larger than 64 MiB.
    pub fn set<V: Encode<As = T> + ?Sized>(self, value: &V) -> Result<(), Failure> {
        self.0.send_until(value, 0)
    }
}

/// A future that is a parameter: the service waits for it, in an actor or on a thread, or awaits it.
#[derive(Debug)]
pub struct UpstreamFuture<T>(Upstream<T>);

/// A stream that ended without its one element: only a host that breaks the rules can.
fn no_value() -> Failure {
    Code::Cancelled.because("the caller ended the future without a value")
}

impl<T: Decode> UpstreamFuture<T> {
    /// A future, and what says its value.
    ///
    /// # Errors
    /// As [`Upstream::pair`].
    pub fn pair() -> Result<(UpstreamFutureWriter<T>, Self), Failure> {
        let (writer, stream) = Upstream::open(true)?;
        Ok((UpstreamFutureWriter(writer), Self(stream)))
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// `cancelled`: the caller has none; what became of the call; `would_park`.
    pub fn wait(mut self) -> Result<T, Failure> {
        self.0.next().unwrap_or_else(|| Err(no_value()))
    }

    /// The stream that it is, for a message.
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
