//! An instance, as its calls and resources see it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use thalweg_queue::no_preempt::lock;
use thalweg_runtime::Handle;

use super::Instance;
use crate::call::{CallCore, CallOwner};
use crate::code::Failure;
use crate::completion::Outcome;
use crate::end_stream::EndStream;
use crate::package::Package;
use crate::resource::{DroppedResource, ResourceOwner};
use crate::spare::{MAX_BUFFER_BYTES, SpareCall};
use crate::stream::stats::MethodStats;

impl Instance {
    /// The instance that a call belongs to.
    pub(crate) fn of_call(call: &CallCore) -> Arc<Self> {
        let instance: Arc<dyn Any + Send + Sync> = Arc::clone(&call.instance) as _;
        instance.downcast().expect("calls belong to instances")
    }
}

impl ResourceOwner for Instance {
    fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Acquire)
    }

    fn discard(self: Arc<Self>, dropped: DroppedResource) {
        if self.is_forked() {
            // The resource belongs to the parent process, and so do the locks.
            std::mem::forget(dropped);
            return;
        }
        lock(&self.dropped).push(dropped);
        self.schedule_if_idle();
    }
}

impl CallOwner for Instance {
    fn package(&self) -> &'static Package {
        self.package
    }

    fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn add_call(&self, call: &Arc<CallCore>) -> Result<usize, Failure> {
        lock(&self.calls).insert(Arc::downgrade(call))
    }

    fn remove_call(&self, key: usize) {
        lock(&self.calls).remove(key);
    }

    #[inline]
    fn recycle(&self, mut spare: SpareCall) {
        spare.clear(MAX_BUFFER_BYTES);
        if spare.core().open_state.is_exhausted() {
            // The memory is freed.
            return;
        }
        self.spare.put(spare, || self.open_state.is_closed());
    }

    fn note_stopped_call(self: Arc<Self>, call: u64) {
        self.has_stopped_calls.store(true, Ordering::Release);
        self.wake_waiters();
        if let Some(guest) = &self.guest
            && guest.note_stopped(call)
        {
            self.schedule_if_idle();
        }
    }

    fn note_full_port(&self) {
        self.saw_full_port.store(true, Ordering::Relaxed);
    }

    fn track_stream(&self, stream: &Arc<dyn EndStream>) {
        lock(&self.streams).push(stream);
    }

    fn method_stats(&self, method: u32) -> Arc<MethodStats> {
        self.method_stats.of_method(method)
    }

    fn replace(self: Arc<Self>) {
        self.is_replaced.store(true, Ordering::Release);
        self.incarnation.fetch_add(1, Ordering::AcqRel);
        self.schedule_if_idle();
    }

    fn has_other_caller_version(&self) -> bool {
        self.versions.get().is_some()
    }

    fn convert_outcome(&self, method: u32, outcome: &mut Outcome) {
        self.convert_outcome(method, outcome);
    }

    fn convert_stream_error(&self, method: u32, error: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.convert_stream_error(method, error)
    }
}
