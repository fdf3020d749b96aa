//! A client in Rust: a host's handle to one instance in the same process.

use std::any::Any;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_queue::clock;
use thalweg_runtime::Handle as Runtime;
use thalweg_wire::{Decode, Encode, Handle, Malformed, message};

use crate::call::CallCore;
use crate::call_batch::{CallBatch, SubmitOnDrop};
use crate::call_error::CallError;
use crate::code::{Code, Failure, unencodable};
use crate::handles;
use crate::instance::Instance;
use crate::instance::guard::InstanceGuard;
use crate::instance::host::Host;
use crate::instance::submit::Sent;
use crate::nested;
use crate::package::{Method, Package};
use crate::pending::{Pending, Reply, read};
use crate::queued_bytes::SPARE_BYTES;
use crate::service::Service;
use crate::stream::Stats;

thread_local! {
    /// A buffer for arguments, kept for reuse.
    static ARGUMENTS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A call and its generation.
type ParentCall = (Arc<CallCore>, u32);

/// An untyped client. Generated code wraps it in a typed one. Clones share the instance. The
/// instance is closed when all of them and their calls, streams and resources are dropped, or by
/// [`close`](Self::close).
#[derive(Clone, Debug)]
pub struct Client {
    guard: Arc<InstanceGuard>,
    timeout: Option<Duration>,
    detached: bool,
    /// The batch that collects the calls of this client, if any.
    batch: Option<Arc<CallBatch>>,
}

impl Client {
    /// Opens an instance on the process's runtime.
    ///
    /// # Errors
    /// The runtime could not be started.
    pub fn start<S: Service>(make: impl Fn() -> S + Send + 'static) -> Result<Self, Failure> {
        Ok(Self::start_on(&Instance::runtime()?, make))
    }

    /// Opens an instance on the process's runtime whose imports are implemented by `host`. If the
    /// host in turn has a client of this instance, both stay open until one of them is closed.
    ///
    /// # Errors
    /// The runtime could not be started. `argument`: the service has no imports.
    pub fn start_with_host<S: Service>(
        make: impl Fn() -> S + Send + 'static,
        host: &Self,
    ) -> Result<Self, Failure> {
        let client = Self::start(make)?;
        client
            .instance()
            .set_host(Host::Client(Arc::clone(&host.guard)))?;
        Ok(client)
    }

    /// The service's imports are implemented by `host` from now on, also for clones of this client: see
    /// [`start_with_host`](Self::start_with_host).
    ///
    /// # Errors
    /// `argument`: the service has no imports. `version`: it has other ones than `host` implements.
    pub fn set_host(&self, host: &Self) -> Result<(), Failure> {
        let package = self.instance().package;
        let hashes = |method: &Method| (method.name, [method.params, method.ok, method.error]);
        let imports = package.imports.iter().map(hashes);
        let implemented = host.instance().package.methods.iter().map(hashes);
        if !package.imports.is_empty() && !imports.eq(implemented) {
            let (name, version) = (package.name, package.version);
            return Err(Code::Version.because(format!(
                "{name}@{version} has other host imports than the host implements"
            )));
        }
        self.instance()
            .set_host(Host::Client(Arc::clone(&host.guard)))
    }

    /// Opens an instance on the given runtime.
    pub fn start_on<S: Service>(runtime: &Runtime, make: impl Fn() -> S + Send + 'static) -> Self {
        Self {
            guard: Arc::new(InstanceGuard::new(Instance::open(make, runtime.clone()))),
            timeout: None,
            detached: false,
            batch: None,
        }
    }

    /// A client of an instance that was opened at run time, for code that was compiled for `package`. The
    /// instance may have another version of that package. `opening` is dropped after the instance was
    /// closed.
    ///
    /// # Errors
    /// `version`: the instance has another package, or an incompatible version; it is closed. `closed`,
    /// `forked`.
    pub fn of_opened(
        instance: Arc<Instance>,
        package: &'static Package,
        opening: impl Any + Send + Sync,
    ) -> Result<Self, Failure> {
        let guard = InstanceGuard::of_opened(instance, package, Box::new(opening));
        guard.instance().set_caller_package(package)?;
        Ok(Self {
            guard: Arc::new(guard),
            timeout: None,
            detached: false,
            batch: None,
        })
    }

    /// Closes the instance now. Its calls and streams end as `cancelled`, and its resources become
    /// stale.
    pub fn close(&self) {
        self.guard.instance().close();
    }

    /// Statistics of a method's streams since this client was opened. `method` is the method's
    /// name, `interface.function`.
    ///
    /// # Errors
    /// `argument`: there is no such method.
    pub fn stream_stats(&self, method: &str) -> Result<Stats, Failure> {
        let instance = self.guard.instance();
        let mut methods = (0..).zip(instance.package.methods);
        match methods.find(|(_, known)| known.name == method) {
            Some((number, _)) => instance.stream_stats(number),
            None => Err(Code::Argument.because(format!("there is no method {method}"))),
        }
    }

    /// A client for the same instance. Each of its calls must end within `timeout`, and so must the
    /// streams that the call returns.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self.clone()
        }
    }

    /// A client for the same instance whose calls are independent of the current call. Without
    /// this, a call that a service makes while it works for another call must end by the deadline
    /// of that call, and is cancelled with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            detached: true,
            ..self.clone()
        }
    }

    /// Submits calls together. `calls` makes them through the client that it receives. They are
    /// submitted in order when `calls` returns, and the service is notified once. Each call is
    /// refused or ends on its own, so a call that the full mailbox refuses does not affect the next
    /// one. Waiting for one of the calls inside `calls` submits all calls that were made so far.
    pub fn batch<R>(&self, calls: impl FnOnce(&Self) -> R) -> R {
        let batch = Arc::new(CallBatch::new(&self.guard));
        let submit = SubmitOnDrop(&batch);
        let client = Self {
            batch: Some(Arc::clone(&batch)),
            ..self.clone()
        };
        let made = calls(&client);
        drop(submit);
        made
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        self.guard.instance()
    }

    /// The deadline of a call that is made now, and the call that it is part of.
    ///
    /// # Errors
    /// The parent call was stopped, so it may not make further calls. `would_park`: the parent call
    /// answers a host call of this client's own service.
    #[inline]
    pub(crate) fn deadline_and_parent(&self) -> Result<(u64, Option<ParentCall>), Failure> {
        let deadline = self.timeout.map_or(u64::MAX, clock::deadline);
        match nested::current() {
            Some(handle) if !self.detached => self.deadline_within(handle, deadline),
            _ => Ok((deadline, None)),
        }
    }

    /// The same for a call that is part of the call with the handle `parent`.
    #[cold]
    fn deadline_within(
        &self,
        parent: u64,
        deadline: u64,
    ) -> Result<(u64, Option<ParentCall>), Failure> {
        let Some((parent, generation)) = handles::find_reused::<CallCore>(parent) else {
            return Ok((deadline, None));
        };
        let origin = parent.origin_instance(generation);
        if origin.is_some_and(|origin| {
            ptr::addr_eq(Arc::as_ptr(&origin), Arc::as_ptr(self.guard.instance()))
        }) {
            return Err(self_call());
        }
        let of_parent = parent.nested_deadline(generation)?;
        Ok((deadline.min(of_parent), Some((parent, generation))))
    }

    /// Makes a call. It is submitted when this returns.
    pub fn call<P: Encode, T, E: Decode>(
        &self,
        method: u32,
        params: &P,
        read: fn(&mut Reply) -> Result<T, Malformed>,
    ) -> Pending<T, E> {
        let instance = self.guard.instance();
        let layouts = &self.guard.package().methods[method as usize];
        let (deadline, caller) = match self.deadline_and_parent() {
            Ok(deadline_and_parent) => deadline_and_parent,
            Err(why) => {
                return Pending::refused(Some(Arc::clone(&self.guard)), why, layouts, read);
            }
        };
        let write = |buffer: &mut Vec<u8>| {
            message::encode_into(params, layouts.params, buffer).map_err(unencodable)
        };
        let sent = match instance.versions.get() {
            None => self.send(method, write, deadline),
            Some(_) => self.send_converted(method, write, deadline),
        };
        let guard = Some(Arc::clone(&self.guard));
        match sent {
            Ok(sent) => {
                // A thread that serves a brief call makes no other call.
                if let (Some((caller, generation)), Sent::Call(call)) = (caller, &sent) {
                    caller.adopt(generation, call);
                }
                if <P::As as Decode>::HAS_HANDLES {
                    params.handles(true);
                }
                Pending::sent(guard, self.batch.clone(), sent, layouts, read)
            }
            Err(failure) => Pending::refused(guard, failure, layouts, read),
        }
    }

    /// Calls an inline method on this thread. Returns its result.
    ///
    /// # Errors
    /// The service's error, or another outcome of the call.
    pub fn call_inline<P: Encode, T, E: Decode>(
        &self,
        method: u32,
        params: &P,
        read_reply: fn(&mut Reply) -> Result<T, Malformed>,
    ) -> Result<T, CallError<E>> {
        let instance = self.instance();
        let layouts = &self.guard.package().methods[method as usize];
        let (deadline, _) = self.deadline_and_parent()?;
        let mut args = ARGUMENTS.take();
        message::encode_into(params, layouts.params, &mut args).map_err(unencodable)?;
        let ended = instance.call_inline(method, &args, deadline);
        if args.capacity() <= SPARE_BYTES {
            ARGUMENTS.set(args);
        }
        let guard = Some(Arc::clone(&self.guard));
        read(ended?, guard, layouts, read_reply)
    }
}

impl Client {
    #[inline(always)]
    fn send(
        &self,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        match &self.batch {
            None => self.guard.instance().send(method, write, deadline),
            Some(batch) => batch.add(method, write, deadline).map(Sent::Call),
        }
    }

    /// The same for a service with another version of the package.
    #[cold]
    #[inline(never)]
    fn send_converted(
        &self,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        let instance = self.guard.instance();
        let method = instance.library_method(method)?;
        let write = |buffer: &mut Vec<u8>| {
            write(buffer)?;
            instance.convert_written_arguments(method, buffer)
        };
        self.send(method, write, deadline)
    }
}

/// A typed client of a service. Generated code has one for each package.
pub trait ServiceClient: Sized {
    /// The package that it was generated from.
    const PACKAGE: &'static Package;

    /// Wraps an untyped client.
    fn from_client(client: Client) -> Self;
}

/// A host that waits for a client while that client's service waits for the host would deadlock.
fn self_call() -> Failure {
    Code::WouldPark.because("a host must not call the client whose service waits for its answer")
}

/// A resource that the host owns. Clones refer to the same resource. It is closed when the last
/// clone is dropped.
#[derive(Clone, Debug)]
pub struct OwnedHandle {
    resource: Arc<OwnedHandleInner>,
    timeout: Option<Duration>,
    detached: bool,
}

#[derive(Debug)]
struct OwnedHandleInner {
    handle: u64,
    /// The resource was transferred back to the service.
    given: AtomicBool,
    guard: Arc<InstanceGuard>,
}

impl OwnedHandle {
    pub(crate) fn new(handle: u64, guard: Arc<InstanceGuard>) -> Self {
        let resource = Arc::new(OwnedHandleInner {
            handle,
            given: AtomicBool::new(false),
            guard,
        });
        Self {
            resource,
            timeout: None,
            detached: false,
        }
    }

    /// A client of the instance that the resource belongs to.
    pub fn client(&self) -> Client {
        Client {
            guard: Arc::clone(&self.resource.guard),
            timeout: self.timeout,
            detached: self.detached,
            batch: None,
        }
    }

    /// The same resource, with a [`client`](Self::client) whose calls have this
    /// [timeout](Client::with_timeout).
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self.clone()
        }
    }

    /// The same resource, with a [`client`](Self::client) whose calls are
    /// [independent](Client::detached) of the current call.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            detached: true,
            ..self.clone()
        }
    }

    /// The handle for a `borrow` parameter.
    pub fn handle(&self) -> Handle {
        Handle(self.resource.handle)
    }

    /// The handle and the instance, for a caller that takes over closing the handle.
    pub(crate) fn into_parts(self) -> (u64, Arc<InstanceGuard>) {
        (self.give(), Arc::clone(&self.resource.guard))
    }

    /// The handle for an `own` parameter. The service closes the resource. Afterwards, a call that
    /// borrows another clone ends as `stale`, and a call that transfers another clone ends as
    /// `argument`.
    pub fn into_handle(self) -> Handle {
        Handle(self.give())
    }

    /// Returns the handle once. Returns 0, which is no valid handle, if a clone was already
    /// transferred.
    fn give(&self) -> u64 {
        match self.resource.given.swap(true, Ordering::Relaxed) {
            false => self.resource.handle,
            true => 0,
        }
    }
}

impl Drop for OwnedHandleInner {
    fn drop(&mut self) {
        if !*self.given.get_mut() {
            // If the client is closed, the handle is stale and nothing is left to close.
            let _ = handles::close_handle(self.handle);
        }
    }
}
