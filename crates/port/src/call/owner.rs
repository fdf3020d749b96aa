//! What a call needs of the instance that it belongs to.

use std::any::Any;
use std::sync::Arc;

use thalweg_runtime::Handle;

use super::CallCore;
use crate::code::Failure;
use crate::completion::Outcome;
use crate::end_stream::EndStream;
use crate::package::Package;
use crate::resource::ResourceOwner;
use crate::spare::SpareCall;
use crate::stream::stats::MethodStats;

/// An instance, as its calls see it.
pub(crate) trait CallOwner: ResourceOwner + Any {
    fn package(&self) -> &'static Package;
    fn runtime(&self) -> &Handle;

    /// Registers the memory of a call. Returns its key.
    ///
    /// # Errors
    /// `overloaded`: there is not enough memory for the list.
    fn add_call(&self, call: &Arc<CallCore>) -> Result<usize, Failure>;

    /// Removes a call that was registered with [`add_call`](Self::add_call).
    fn remove_call(&self, key: usize);

    /// Keeps the memory of a call for reuse.
    fn recycle(&self, spare: SpareCall);

    /// Called when the call with this handle was stopped. It may be in the mailbox.
    fn note_stopped_call(self: Arc<Self>, call: u64);

    /// Called when the port of a call has too many unreaped results.
    fn note_full_port(&self);

    /// Registers a stream that ends when the instance is closed.
    fn track_stream(&self, stream: &Arc<dyn EndStream>);

    /// Statistics of the streams of a method.
    fn method_stats(&self, method: u32) -> Arc<MethodStats>;

    /// Rule 3: makes the resources stale. A turn then drops the service with everything that it
    /// kept, and the next call creates a new service.
    fn replace(self: Arc<Self>);

    /// Whether the caller has another version of the package.
    fn has_other_caller_version(&self) -> bool;

    /// Converts a call's outcome to the caller's version.
    fn convert_outcome(&self, method: u32, outcome: &mut Outcome);

    /// Converts the error at the end of a stream of this method to the caller's version. `None` if
    /// both versions are equal.
    ///
    /// # Errors
    /// `guest_lost`: the error has no counterpart in the caller's version.
    fn convert_stream_error(&self, method: u32, error: &[u8]) -> Result<Option<Vec<u8>>, Failure>;
}
