//! Streams, futures and samples that the functions return.

use crate::conformance::{Color, Days, Point, Sample, Scalars};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use thalweg::port::{FutureReader, StreamError};
use thalweg::queue::clock;
use thalweg::runtime::wait;
use thalweg::wire::{Decode, Encode};
use thalweg::{Call, StreamReader, Task};

/// The interval at which a waiting call checks whether it was cancelled. Only a test service should
/// poll.
const LOOK: Duration = Duration::from_millis(1);

/// A stream of `records`, which ends early if its reader is closed.
pub(crate) fn stream_of<T, E>(
    call: &Call,
    records: impl Iterator<Item = T> + Send + 'static,
) -> StreamReader<T, E>
where
    T: Encode<As = T> + Decode,
    E: StreamError,
{
    let (writer, reader) = call.stream();
    call.spawn(move |_| drop(writer.send_all(records)));
    reader
}

/// A future whose value is ready after `ms` milliseconds.
pub(crate) fn later<T>(call: &Call, milliseconds: u32, value: T) -> FutureReader<T>
where
    T: Encode<As = T> + Decode + Send + 'static,
{
    let (writer, reader) = call.future();
    call.spawn(move |call| {
        pause(call, milliseconds);
        // The reader may be closed.
        let _ = writer.set(&value);
    });
    reader
}

/// Sleeps for this time, or until the call is cancelled.
pub(crate) fn pause(call: &Call, milliseconds: u32) {
    let time = Duration::from_millis(milliseconds.into());
    wait_until(call, clock::deadline(time));
}

/// A stream of `records`, which are written before the reader gets the stream.
pub(crate) fn written<T: Encode<As = T> + Decode>(
    call: &Call,
    records: impl Iterator<Item = T>,
) -> StreamReader<T> {
    let (writer, reader) = call.stream();
    writer
        .send_all(records)
        .expect("a stream that nobody closed");
    reader
}

/// Sample `number`, as described in the WIT.
pub(crate) fn sample(number: u32) -> Sample {
    let i = number as i32;
    let even = number.is_multiple_of(2);
    let corners = (0..i % 4).map(|corner| Point { x: i, y: corner });
    Sample {
        number,
        at: Point { x: i, y: -i },
        all: Scalars {
            a_bool: even,
            a_u64: u64::from(number) << 32,
            a_u8: number as u8,
            a_u16: number as u16,
            a_s8: i as i8,
            a_u32: number,
            a_s16: -i as i16,
            a_f64: f64::from(number) / 2.0,
            a_char: char::from(b'a' + (number % 26) as u8),
            a_s64: -i64::from(i),
            a_f32: number as f32 / 4.0,
            a_s32: -i,
        },
        weight: even.then_some(f64::from(number)),
        color: [Color::Red, Color::Green, Color::Bool][number as usize % 3],
        days: if even { Days::MONDAY } else { Days::WORKDAY },
        pair: (number as u8, u64::from(number)),
        name: even.then(|| format!("sample {number}")),
        corners: corners.collect(),
    }
}

/// Increments a counter during its lifetime.
pub(crate) struct Running(Arc<AtomicU32>);

impl Running {
    pub(crate) fn new(count: &Arc<AtomicU32>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until `deadline`, in nanoseconds of the clock, and counts the call meanwhile.
pub(crate) fn waits(counted: Running, deadline: u64) -> Task<()> {
    Task::new(move |call| {
        let _counted = counted;
        wait_until(call, deadline);
    })
}

/// Waits in an actor until `deadline`, in nanoseconds of the clock, or until the call is cancelled.
pub(crate) fn wait_until(call: &Call, deadline: u64) {
    while call.check().is_ok() && clock::now() < deadline {
        wait::park(Some(deadline.min(clock::deadline(LOOK))));
    }
}
