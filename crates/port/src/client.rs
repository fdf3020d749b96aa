//! A client in Rust: an instance of its own, in the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_queue::clock;
use thalweg_runtime::Handle as Runtime;
use thalweg_wire::{Decode, Encode, Handle, Malformed, message};

use crate::call::CallCore;
use crate::call_batch::{CallBatch, SubmitOnDrop};
use crate::code::{Code, Failure, unencodable};
use crate::handles;
use crate::host::self_call;
use crate::instance::Instance;
use crate::nested;
use crate::pending::{Pending, Reply};
use crate::service::Service;
use crate::stream::Stats;

/// Closes the instance when the last client, call, stream and resource of it is gone.
#[derive(Debug)]
pub(crate) struct InstanceGuard(Arc<Instance>);

impl InstanceGuard {
    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.0
    }
}

impl Drop for InstanceGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The place of a call, and which of its calls.
type ParentCall = (Arc<CallCore>, u32);

/// An untyped client; generated code puts types on it. Clones share the instance, which is closed when they and their calls, streams
/// and resources are gone, or by [`close`](Self::close).
#[derive(Clone, Debug)]
pub struct Client {
    guard: Arc<InstanceGuard>,
    timeout: Option<Duration>,
    detached: bool,
    /// Where its calls are kept, if they are made together.
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

    /// Opens an instance on a runtime of the caller's.
    pub fn start_on<S: Service>(runtime: &Runtime, make: impl Fn() -> S + Send + 'static) -> Self {
        Self {
            guard: Arc::new(InstanceGuard(Instance::open(make, runtime.clone()))),
            timeout: None,
            detached: false,
            batch: None,
        }
    }

    /// Closes the instance now: its calls and streams end as cancelled, its resources are stale.
    pub fn close(&self) {
        self.guard.0.close();
    }

    /// What the streams of a method did since this client was opened, by the method's name, `interface.function`.
    ///
    /// # Errors
    /// `argument`: there is no such method.
    pub fn stream_stats(&self, method: &str) -> Result<Stats, Failure> {
        let instance = &self.guard.0;
        let mut methods = (0..).zip(instance.package.methods);
        match methods.find(|(_, known)| known.name == method) {
            Some((number, _)) => instance.stream_stats(number),
            None => Err(Code::Argument.because(format!("there is no method {method}"))),
        }
    }

    /// The same client, each of whose calls, with the streams that it returns, must end within `timeout`.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self.clone()
        }
    }

    /// The same client, whose calls are nobody's part. Those of others, made by a service while it works for a call, must end by that call's deadline, and are
    /// cancelled with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            detached: true,
            ..self.clone()
        }
    }

    /// Makes the calls that `calls` makes by the client that it is given, together: they go when it returns, in their order, and the service is told once. Each is
    /// refused or ends by itself, and one that finds no room is no reason against the next. Whoever waits for one of them in `calls` has all go that
    /// were made so far.
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

    pub(crate) fn guard(&self) -> &Arc<InstanceGuard> {
        &self.guard
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.guard.0
    }

    /// By when a call must end that is made now, and the call whose part it is.
    ///
    /// # Errors
    /// That one was stopped: none is made for it any more. `would_park`: it answers what this client's service asks.
    pub(crate) fn deadline_and_parent(&self) -> Result<(u64, Option<ParentCall>), Failure> {
        let deadline = self.timeout.map_or(u64::MAX, clock::deadline);
        let caller = match nested::current() {
            Some(handle) if !self.detached => handles::find_call_core(handle),
            _ => None,
        };
        match caller {
            Some((caller, generation)) => {
                let origin = caller.origin_instance(generation);
                if origin.is_some_and(|instance| Arc::ptr_eq(&instance, &self.guard.0)) {
                    return Err(self_call());
                }
                let deadline_and_parent = caller.nested_deadline(generation)?;
                Ok((
                    deadline.min(deadline_and_parent),
                    Some((caller, generation)),
                ))
            }
            None => Ok((deadline, None)),
        }
    }

    /// Makes a call. It is under way when this returns.
    pub fn call<P: Encode, T, E: Decode>(
        &self,
        method: u32,
        params: &P,
        read: fn(&mut Reply) -> Result<T, Malformed>,
    ) -> Pending<T, E> {
        let instance = &self.guard.0;
        let layouts = &instance.package.methods[method as usize];
        let (deadline, caller) = match self.deadline_and_parent() {
            Ok(deadline_and_parent) => deadline_and_parent,
            Err(why) => {
                return Pending::refused(Some(Arc::clone(&self.guard)), why, layouts, read);
            }
        };
        let write = |buffer| message::encode(params, layouts.params, buffer).map_err(unencodable);
        let sent = match &self.batch {
            None => instance.send(method, write, deadline),
            Some(batch) => batch.add(method, write, deadline),
        };
        match sent {
            Ok(call) => {
                if let Some((caller, generation)) = caller {
                    caller.adopt(generation, &call);
                }
                if <P::As as Decode>::HOLDS {
                    params.handles(true);
                }
                let batch = self.batch.clone();
                Pending::sent(Some(Arc::clone(&self.guard)), batch, call, layouts, read)
            }
            Err(failure) => Pending::refused(Some(Arc::clone(&self.guard)), failure, layouts, read),
        }
    }
}

/// A resource that the caller owns. Clones refer to the same resource, which is closed when the last
/// clone is dropped.
#[derive(Clone, Debug)]
pub struct Own(Arc<OwnInner>);

#[derive(Debug)]
struct OwnInner {
    handle: u64,
    /// The service has it.
    given: AtomicBool,
    guard: Arc<InstanceGuard>,
}

impl Own {
    pub(crate) fn new(handle: u64, guard: Arc<InstanceGuard>) -> Self {
        Self(Arc::new(OwnInner {
            handle,
            given: AtomicBool::new(false),
            guard,
        }))
    }

    /// A client of the instance that it lives in, without a timeout.
    pub fn client(&self) -> Client {
        Client {
            guard: Arc::clone(&self.0.guard),
            timeout: None,
            detached: false,
            batch: None,
        }
    }

    /// For a parameter `borrow`.
    pub fn handle(&self) -> Handle {
        Handle(self.0.handle)
    }

    /// For who closes it in another way.
    pub(crate) fn into_parts(self) -> (u64, Arc<InstanceGuard>) {
        (self.give(), Arc::clone(&self.0.guard))
    }

    /// For a parameter `own`: the service closes it. A call that borrows another clone then ends as `stale`, and one that gives
    /// another clone away ends as `argument`.
    pub fn into_handle(self) -> Handle {
        Handle(self.give())
    }

    /// The handle, once; 0, which is no handle, if a clone gave it away before.
    fn give(&self) -> u64 {
        match self.0.given.swap(true, Ordering::Relaxed) {
            false => self.0.handle,
            true => 0,
        }
    }
}

impl Drop for OwnInner {
    fn drop(&mut self) {
        if !*self.given.get_mut() {
            // Stale where the client is closed: nothing to do then.
            let _ = handles::close_handle(self.handle);
        }
    }
}
