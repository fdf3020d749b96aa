//! A service in Rust whose turns are run by threads of foreign code, which take its calls from the port.

use std::sync::Arc;

use thalweg_runtime::Handle;

use super::Instance;
use crate::code::{Code, Failure};
use crate::guest::GuestPort;
use crate::service::Service;

impl Instance {
    /// An instance with a [port](Self::guest_port), whose turns are run by the threads that call
    /// [`GuestPort::run_turn`]. Its service leaves each call to the thread that it is called on. The port
    /// ends when the instance is closed or [finished](Self::finish). At most `capacity` calls wait;
    /// further ones are `overloaded`.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use thalweg_port::{Incoming, Instance, Method, Package, Port, QueueLimits, Service};
    ///
    /// thread_local! {
    ///     static TAKEN: Cell<Option<Incoming>> = const { Cell::new(None) };
    /// }
    ///
    /// struct Echo;
    ///
    /// impl Service for Echo {
    ///     const PACKAGE: &'static Package = &Package {
    ///         name: "example:echo",
    ///         version: "0.1.0",
    ///         layout: 0,
    ///         methods: &[Method::new("echo.echo", "record{value:u32}\nu32\n\n")],
    ///         imports: &[],
    ///         limits: QueueLimits::DEFAULT,
    ///     };
    ///
    ///     fn dispatch(&mut self, call: Incoming) {
    ///         TAKEN.set(Some(call));
    ///     }
    /// }
    ///
    /// let instance = Instance::open_on_port(16, || Echo, Instance::runtime()?)?;
    /// let taken = instance.guest_port().expect("it has one").clone();
    /// let server = std::thread::spawn(move || {
    ///     while taken.run_turn(1, u64::MAX).is_ok() {
    ///         if let Some(call) = TAKEN.take() {
    ///             call.serve(|_, (value,): (u32,)| Ok(value), Incoming::reply_value);
    ///         }
    ///     }
    /// });
    /// let port = Port::open(16)?;
    /// let params = Echo::PACKAGE.methods[0].params;
    /// let args = thalweg_wire::message::encode(&(7u32,), params, Vec::new()).expect("it is small");
    /// instance.submit(&port, 1, 0, &args, u64::MAX)?;
    /// port.wait(u64::MAX)?;
    /// assert_eq!(port.reap()?.count(), 1);
    /// instance.finish();
    /// server.join().expect("it does not panic");
    /// # Ok::<(), thalweg_port::Failure>(())
    /// ```
    ///
    /// # Errors
    /// `argument`: the capacity is 0. `overloaded`: no further descriptor can be opened.
    pub fn open_on_port<S: Service>(
        capacity: u32,
        make: impl Fn() -> S + Send + 'static,
        runtime: Handle,
    ) -> Result<Arc<Self>, Failure> {
        if capacity == 0 {
            return Err(Code::Argument.because("the capacity is at least 1"));
        }
        let make = Box::new(move || Ok(Box::new(make()) as _));
        let mut instance = Self::new(S::PACKAGE, capacity, make, || None, runtime);
        instance.guest_port = Some(GuestPort::new()?);
        Ok(Arc::new(instance))
    }

    /// The port whose threads run the turns.
    pub fn guest_port(&self) -> Option<&Arc<GuestPort>> {
        self.guest_port.as_ref()
    }

    /// Accepts no more calls. Those that wait are taken, and then the port of the instance ends. Calls
    /// that were taken can still be answered. Without effect unless the instance is one of
    /// [`open_on_port`](Self::open_on_port).
    pub fn finish(self: &Arc<Self>) {
        if self.has_own_port() && !self.is_forked() {
            self.mailbox.finish();
            self.schedule_if_idle();
        }
    }

    /// Whether the port has no other instances, unlike that of a guest.
    fn has_own_port(&self) -> bool {
        self.guest_port.is_some() && self.guest.is_none()
    }

    /// Whether no call waits, and none will come.
    pub(crate) fn accepts_no_calls(&self) -> bool {
        self.open_state.is_closed() || self.mailbox.is_finished() && self.mailbox.len() == 0
    }
}
