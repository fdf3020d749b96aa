//! The contents of tick number `n` and of a pulse, and how they are written.

use std::sync::Arc;
use std::time::Duration;

use thalweg::port::{Failure, StreamWriter};
use thalweg::queue::clock;
use thalweg::runtime;

use crate::events::pass;
use crate::gate::Gate;
use crate::lab::{Pulse, Tick};

/// Tick number `n`, written at no time.
#[must_use]
#[inline]
pub fn tick(n: u64) -> Tick {
    let bid = 10_000 + n % 97;
    Tick {
        number: n,
        at: 0,
        bid,
        ask: bid + 1,
        bid_size: n % 7,
        ask_size: n % 11,
        last: bid,
        volume: 3 * n,
    }
}

/// Sum of the fields of a tick that every host reads: its number, its bid and its volume.
#[must_use]
#[inline]
pub fn touch(tick: &Tick) -> u64 {
    tick.number + tick.bid + tick.volume
}

/// What the first `count` ticks sum up to.
#[must_use]
pub fn checksum(count: u64) -> u64 {
    (0..count).map(|n| touch(&tick(n))).sum()
}

/// Pulse number `n`.
#[must_use]
#[inline]
pub fn pulse(n: u64) -> Pulse {
    Pulse {
        number: n,
        kind: n % 7,
    }
}

/// Writes ticks until the reader has enough or is gone.
pub(crate) fn write(
    writer: StreamWriter<Tick>,
    count: u64,
    batch: u32,
    gate: Option<Arc<Gate>>,
) -> Result<(), Failure> {
    let mark = pass(gate);
    let mut batch = writer.batch(batch);
    for n in mark..mark + count {
        batch.send(&tick(n))?;
    }
    drop(batch);
    writer.finish()
}

/// Writes pulses until the reader has enough or is gone.
pub(crate) fn write_pulses(
    writer: StreamWriter<Pulse>,
    count: u64,
    batch: u32,
    gate: Option<Arc<Gate>>,
) -> Result<(), Failure> {
    let mark = pass(gate);
    let mut batch = writer.batch(batch);
    for n in mark..mark + count {
        batch.send(&pulse(n))?;
    }
    drop(batch);
    writer.finish()
}

/// Writes a tick each period, with its time, until the reader stops or is gone. After a late tick
/// the next one follows sooner.
pub(crate) fn beat(
    writer: StreamWriter<Tick>,
    count: u64,
    period: Duration,
) -> Result<(), Failure> {
    let mut due = std::time::Instant::now();
    for n in 0..count {
        due += period;
        runtime::sleep_until(due);
        let at = clock::now();
        writer.send(&Tick { at, ..tick(n) })?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_follows_from_its_number() {
        assert_eq!(checksum(2), 10_000 + 1 + 10_001 + 3);
        let Tick {
            ask,
            bid_size,
            ask_size,
            ..
        } = tick(97 + 13);
        assert_eq!((ask, bid_size, ask_size), (10_014, 5, 0));
        assert_eq!(pulse(8).kind, 1);
    }
}
