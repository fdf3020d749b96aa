//! What a stream needs of the call that it belongs to.

use std::fmt::Debug;
use std::sync::Arc;

use thalweg_runtime::Handle;

use crate::code::Failure;
use crate::stream::stats::MethodStats;

/// A call that has streams.
pub(crate) trait StreamOwner: Debug + Send + Sync {
    fn handle(&self) -> u64;
    fn method_name(&self) -> &'static str;
    fn runtime(&self) -> &Handle;
    /// Statistics of the method.
    fn method_stats(&self) -> Arc<MethodStats>;

    /// Converts the service's error at the end of a stream to the caller's version. `None` if both
    /// versions are equal.
    ///
    /// # Errors
    /// `guest_lost`: the error has no counterpart in the caller's version.
    fn convert_stream_error(&self, error: &[u8]) -> Result<Option<Vec<u8>>, Failure>;

    /// Called when a stream has ended, perhaps after the call.
    fn stream_ended(&self);
}
