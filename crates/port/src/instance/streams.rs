//! The streams of an instance: their statistics, and the streams that are parameters.

use std::sync::Arc;

use super::Instance;
use crate::call::CallOwner;
use crate::code::{Code, Failure};
use crate::end_stream::EndStream;
use crate::stream::{Stats, UpstreamCore};

impl Instance {
    /// Statistics of the streams of a method.
    ///
    /// # Errors
    /// `argument`: there is no such method.
    pub fn stream_stats(&self, method: u32) -> Result<Stats, Failure> {
        let method = self.library_method(method)?;
        if self.package.methods.get(method as usize).is_none() {
            return Err(Code::Argument.because(format!("there is no method {method}")));
        }
        Ok(self.method_stats.of_method(method).sum())
    }

    /// Creates a stream or a future for a parameter of a method. Both are given by their numbers.
    /// It ends with the client.
    ///
    /// # Errors
    /// `argument`: there is no such method, or its parameter is not a stream. `closed`, `forked`.
    pub fn upstream(&self, method: u32, parameter: u32) -> Result<Arc<UpstreamCore>, Failure> {
        let method = self.library_method(method)?;
        self.admit(method)?;
        let described = &self.package.methods[method as usize];
        let (layout, is_future) = described.upstream_parameter(parameter).ok_or_else(|| {
            let name = described.name;
            Code::Argument.because(format!("parameter {parameter} of {name} is not a stream"))
        })?;
        let stream = UpstreamCore::with_conversion(
            layout,
            is_future,
            self.upstream_conversion(method, parameter),
        );
        let ends: Arc<dyn EndStream> = Arc::clone(&stream) as _;
        self.track_stream(&ends);
        // A concurrent close did not see the new stream.
        self.check_open()
            .inspect_err(|why| stream.end(why.clone()))?;
        Ok(stream)
    }
}
