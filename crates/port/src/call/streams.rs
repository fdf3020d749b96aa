//! The streams of a call.

use std::sync::Arc;

use thalweg_runtime::Handle;
use thalweg_wire::Decode;

use super::{Call, CallCore};
use crate::code::Failure;
use crate::end_stream::EndStream;
use crate::package::StreamOptions;
use crate::stream::future::{ONE_RECORD, into_future};
use crate::stream::owner::StreamOwner;
use crate::stream::stats::MethodStats;
use crate::stream::{
    FutureReader, FutureWriter, StreamCore, StreamError, StreamReader, StreamWriter,
};

impl StreamOwner for CallCore {
    fn handle(&self) -> u64 {
        self.handle()
    }

    fn method_name(&self) -> &'static str {
        self.method_name()
    }

    fn runtime(&self) -> &Handle {
        self.instance.runtime()
    }

    fn method_stats(&self) -> Arc<MethodStats> {
        self.instance.method_stats(self.method())
    }

    fn convert_stream_error(&self, error: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.instance.convert_stream_error(self.method(), error)
    }

    fn stream_ended(&self) {
        self.cancel_timer_if_done();
    }
}

impl Call {
    /// Creates a stream with the options of this method: the writer, and the reader to return. It
    /// is complete when all writers have [finished](StreamWriter::finish). It ends at the call's
    /// deadline and when the call is stopped.
    pub fn stream<T: Decode, E: StreamError>(&self) -> (StreamWriter<T, E>, StreamReader<T, E>) {
        let core = self.core.core();
        let method = core.package.methods.get(core.method() as usize);
        self.stream_with(method.and_then(|m| m.stream).unwrap_or_default())
    }

    pub(crate) fn stream_with<T: Decode, E: StreamError>(
        &self,
        options: StreamOptions,
    ) -> (StreamWriter<T, E>, StreamReader<T, E>) {
        let core = self.core.core();
        let stream = StreamCore::new(Arc::clone(core) as _, T::SIZE, T::ALIGN, options);
        let ends: Arc<dyn EndStream> = Arc::clone(&stream) as _;
        core.adopt_stream(&ends);
        (
            StreamWriter::new(Arc::clone(&stream)),
            StreamReader::new(stream),
        )
    }

    /// Creates a future: the writer, and the reader to return. It fails at the call's deadline and
    /// when the call is stopped.
    pub fn future<T: Decode, E: StreamError>(&self) -> (FutureWriter<T, E>, FutureReader<T, E>) {
        into_future(self.stream_with(ONE_RECORD))
    }
}
