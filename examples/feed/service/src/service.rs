//! The service: a market whose events follow from their numbers, so that every host counts the
//! same.

use thalweg::port::{Call, Failure, StreamReader, StreamWriter};

use crate::feed::{Event, Feed, Kind, Level};

/// Number of events between two halts.
const HALT_EVERY: u64 = 1_000;
/// Every fifth event is a trade.
const TRADE_EVERY: u64 = 5;
/// Nanoseconds between two events.
const NS: u64 = 250;
/// The price of the first event in hundredths.
const OPENING_PRICE: i64 = 10_000;

/// The service. The interface documents its functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Market;

/// One side of the order book. It begins at `best`, and each level is one hundredth further away.
fn side(best: i64, step: i64, number: u64) -> [Level; 14] {
    std::array::from_fn(|place| Level {
        price: best + step * place as i64,
        size: 1 + (number + place as u64) % 50,
    })
}

/// Event `number`.
fn event(number: u64, kind: Kind) -> Event {
    // A pseudo-random walk between 95 and 105.
    let price = OPENING_PRICE - 500 + (number * 7_919 % 1_001) as i64;
    Event {
        number,
        at_ns: number * NS,
        symbol: (number % 8) as u32,
        kind,
        price,
        size: 1 + number % 100,
        bids: side(price, -1, number),
        asks: side(price + 1, 1, number),
    }
}

fn ordinary(number: u64) -> Event {
    let is_trade = number.is_multiple_of(TRADE_EVERY);
    event(number, if is_trade { Kind::Trade } else { Kind::Quote })
}

/// Writes all events and finishes. If a send fails, the writer is dropped, and the reader gets the
/// reason.
fn write(writer: StreamWriter<Event>, count: u64, halts: bool) -> Result<(), Failure> {
    for number in 0..count {
        if halts && number > 0 && number.is_multiple_of(HALT_EVERY) {
            writer.control(&event(number, Kind::Halt))?;
        }
        writer.send(&ordinary(number))?;
    }
    writer.finish()
}

impl Feed for Market {
    fn all(&mut self, call: &Call, count: u64) -> StreamReader<Event> {
        let (writer, reader) = call.stream();
        // A separate actor waits for a slow reader, so that the service is not blocked.
        call.spawn(move |_| drop(write(writer, count, false)));
        reader
    }

    fn recent(&mut self, call: &Call, count: u64) -> StreamReader<Event> {
        let (writer, reader) = call.stream();
        // The stream cannot be closed yet.
        let _ = write(writer, count, true);
        reader
    }

    fn newest(&mut self, call: &Call, count: u64) -> StreamReader<Event> {
        let (writer, reader) = call.stream();
        let _ = write(writer, count, false);
        reader
    }
}
