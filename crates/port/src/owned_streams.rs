//! Streams and futures inside results: a [`Owned`] with a reader type.

use std::sync::Arc;

use thalweg_wire::Decode;

use crate::call::Call;
use crate::code::{Code, Failure};
use crate::handles::{self, Kind};
use crate::owned::Owned;
use crate::stream::{FutureReader, StreamReader};

impl Call {
    /// Puts a stream's reading end into a value. The receiver of the value reads it. If it is not
    /// read, the stream is closed.
    ///
    /// ```
    /// use thalweg_port::{Call, Failure, Owned, StreamReader};
    ///
    /// type Feed = (String, Owned<StreamReader<u64>>);
    ///
    /// fn feed(call: &Call, name: &str) -> Result<Feed, Failure> {
    ///     let (writer, reader) = call.stream();
    ///     call.spawn(move |_| drop(writer.send_all(0..100u64)));
    ///     Ok((name.to_owned(), call.own_stream(reader)?))
    /// }
    /// ```
    ///
    /// # Errors
    /// `overloaded`: too many handles are open. The stream is then closed.
    pub fn own_stream<T: Decode>(
        &self,
        reader: StreamReader<T>,
    ) -> Result<Owned<StreamReader<T>>, Failure> {
        into_owned(reader)
    }

    /// Puts a future's reading end into a value.
    ///
    /// # Errors
    /// The errors of [`own_stream`](Self::own_stream).
    pub fn own_future<T: Decode>(
        &self,
        reader: FutureReader<T>,
    ) -> Result<Owned<FutureReader<T>>, Failure> {
        into_owned(reader.into_stream())
    }
}

fn into_owned<T: Decode, R>(reader: StreamReader<T>) -> Result<Owned<R>, Failure> {
    let core = reader.into_core();
    match handles::insert(Kind::Stream, Arc::clone(&core)) {
        Ok(handle) => Ok(Owned::new(handle, None)),
        Err(failure) => {
            core.close();
            Err(failure)
        }
    }
}

/// The reader of a stream, on the caller's side.
fn reader<T: Decode, R>(owned: Owned<R>) -> Result<StreamReader<T>, Failure> {
    let Some((handle, guard)) = owned.into_parts() else {
        return Err(Code::Argument.because("only the caller can read it"));
    };
    let core = handles::remove(handle)?.get(Kind::Stream);
    let core = core
        .map_err(|other| Code::Argument.because(format!("it is {}, not a stream", other.name())))?;
    Ok(StreamReader::with_guard(core, guard))
}

impl<T: Decode> Owned<StreamReader<T>> {
    /// The reader of the stream, on the caller's side.
    ///
    /// # Errors
    /// `stale`: the stream was closed. `argument`: this is the service's side, which has
    /// transferred its reader.
    pub fn into_reader(self) -> Result<StreamReader<T>, Failure> {
        reader(self)
    }
}

impl<T: Decode> Owned<FutureReader<T>> {
    /// The reader of the future, on the caller's side.
    ///
    /// # Errors
    /// The errors of a stream's `into_reader`.
    pub fn into_reader(self) -> Result<FutureReader<T>, Failure> {
        reader(self).map(FutureReader::from)
    }
}
