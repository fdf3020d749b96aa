//! Streams and futures inside results: a [`Held`] with a reader type.

use std::sync::Arc;

use thalweg_wire::Decode;

use crate::call::Call;
use crate::code::{Code, Failure};
use crate::handles::{self, Object};
use crate::held::Held;
use crate::stream::{FutureReader, StreamReader};

impl Call {
    /// Puts a stream's reading end into a value. The receiver of the value reads it. If it is not
    /// read, the stream is closed.
    ///
    /// ```
    /// use thalweg_port::{Call, Failure, Held, StreamReader};
    ///
    /// type Feed = (String, Held<StreamReader<u64>>);
    ///
    /// fn feed(call: &Call, name: &str) -> Result<Feed, Failure> {
    ///     let (writer, reader) = call.stream();
    ///     call.spawn(move |_| drop(writer.send_all(0..100u64)));
    ///     Ok((name.to_owned(), call.hold_stream(reader)?))
    /// }
    /// ```
    ///
    /// # Errors
    /// `overloaded`: too many handles are open. The stream is then closed.
    pub fn hold_stream<T: Decode>(
        &self,
        reader: StreamReader<T>,
    ) -> Result<Held<StreamReader<T>>, Failure> {
        hold(reader)
    }

    /// Puts a future's reading end into a value.
    ///
    /// # Errors
    /// The errors of [`hold_stream`](Self::hold_stream).
    pub fn hold_future<T: Decode>(
        &self,
        reader: FutureReader<T>,
    ) -> Result<Held<FutureReader<T>>, Failure> {
        hold(reader.into_stream())
    }
}

fn hold<T: Decode, R>(reader: StreamReader<T>) -> Result<Held<R>, Failure> {
    let core = reader.into_core();
    match handles::insert(Object::Stream(Arc::clone(&core))) {
        Ok(handle) => Ok(Held::new(handle, None)),
        Err(failure) => {
            core.close();
            Err(failure)
        }
    }
}

/// The reader of a stream, on the caller's side.
fn reader<T: Decode, R>(held: Held<R>) -> Result<StreamReader<T>, Failure> {
    let Some((handle, guard)) = held.into_parts() else {
        return Err(Code::Argument.because("only the caller can read it"));
    };
    match handles::remove(handle)? {
        Object::Stream(core) => Ok(StreamReader::with_guard(core, guard)),
        other => Err(Code::Argument.because(format!("it is {}, not a stream", other.kind()))),
    }
}

impl<T: Decode> Held<StreamReader<T>> {
    /// The reader of the stream, on the caller's side.
    ///
    /// # Errors
    /// `stale`: the stream was closed. `argument`: this is the service's side, which has
    /// transferred its reader.
    pub fn into_reader(self) -> Result<StreamReader<T>, Failure> {
        reader(self)
    }
}

impl<T: Decode> Held<FutureReader<T>> {
    /// The reader of the future, on the caller's side.
    ///
    /// # Errors
    /// The errors of a stream's `into_reader`.
    pub fn into_reader(self) -> Result<FutureReader<T>, Failure> {
        reader(self).map(FutureReader::from)
    }
}
