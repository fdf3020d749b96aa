//! The service: as little as there can be.

use thalweg::port::{Call, Failure, StreamReader, StreamWriter, Task};

use std::time::Duration;

use crate::content::{Content, Contents};
use crate::events::{self, Feed};
use crate::gate::NextGate;
use crate::lab::{BytesPayload, Event, Lab, Match, MatchView, Pulse, Scalars, Tick};
use crate::{predicates, ticks};

/// Its state is the gate of its next stream, which a measurement in the same process sets, and the sum
/// of `tally`.
#[derive(Clone, Debug, Default)]
pub struct LabService {
    next_gate: NextGate,
    sum: u64,
}

impl LabService {
    /// A service whose streams of events, ticks and pulses start at this gate.
    #[must_use]
    pub fn at(next_gate: NextGate) -> Self {
        Self { next_gate, sum: 0 }
    }
}

impl Lab for LabService {
    fn nop(&mut self, _: &Call) {}

    fn nop_async(&mut self, _: &Call) -> Task<()> {
        Task::new(|_| ())
    }

    fn generate(&mut self, call: &Call, count: u64) -> StreamReader<Match> {
        let (writer, reader) = call.stream();
        call.spawn(move |_| drop(write(writer, count)));
        reader
    }

    fn events(&mut self, call: &Call, count: u64, batch: u32) -> StreamReader<Event> {
        self.feed(call, count, batch, 1, 0, 0)
    }

    fn events_reserved(&mut self, call: &Call, count: u64) -> StreamReader<Event> {
        let (writer, reader) = call.stream();
        let gate = self.next_gate.get();
        call.spawn(move |_| drop(events::write_reserved(writer, count, gate)));
        reader
    }

    fn ticks(&mut self, call: &Call, count: u64, batch: u32) -> StreamReader<Tick> {
        let (writer, reader) = call.stream();
        let gate = self.next_gate.get();
        call.spawn(move |_| drop(ticks::write(writer, count, batch, gate)));
        reader
    }

    fn heartbeat(&mut self, call: &Call, count: u64, period_us: u64) -> StreamReader<Tick> {
        let (writer, reader) = call.stream();
        let period = Duration::from_micros(period_us);
        call.spawn(move |_| drop(ticks::beat(writer, count, period)));
        reader
    }

    fn pulses(&mut self, call: &Call, count: u64, batch: u32) -> StreamReader<Pulse> {
        let (writer, reader) = call.stream();
        let gate = self.next_gate.get();
        call.spawn(move |_| drop(ticks::write_pulses(writer, count, batch, gate)));
        reader
    }

    fn feed(
        &mut self,
        call: &Call,
        count: u64,
        batch: u32,
        writers: u32,
        tails: u32,
        per_s: u64,
    ) -> StreamReader<Event> {
        let (writer, reader) = call.stream();
        let asked = Feed {
            count,
            batch,
            writers,
            tails,
            per_s,
        };
        for own in 0..writers {
            let (writer, gate) = (writer.clone(), self.next_gate.get());
            call.spawn(move |_| drop(events::feed(writer, asked, own, gate)));
        }
        let _ = writer.finish();
        reader
    }

    fn feed_at_once(
        &mut self,
        call: &Call,
        count: u64,
        batch: u32,
        writers: u32,
        tails: u32,
        per_s: u64,
    ) -> StreamReader<Event> {
        self.feed(call, count, batch, writers, tails, per_s)
    }

    fn events_in256(&mut self, call: &Call, count: u64, batch: u32) -> StreamReader<Event> {
        self.events(call, count, batch)
    }

    fn events_in1024(&mut self, call: &Call, count: u64, batch: u32) -> StreamReader<Event> {
        self.events(call, count, batch)
    }

    fn parity(&mut self, _: &Call, a: i64, b: i64, x: f64) -> bool {
        predicates::parity(a, b, x)
    }

    fn payload(&mut self, _: &Call, data: Vec<u8>) -> bool {
        predicates::payload(&data)
    }

    fn parities(&mut self, call: &Call, count: u64) -> StreamReader<Scalars> {
        let (writer, reader) = call.stream();
        call.spawn(move |_| drop(predicates::write_scalars(writer, count)));
        reader
    }

    fn payloads(&mut self, call: &Call, count: u64, size: u32) -> StreamReader<BytesPayload> {
        let (writer, reader) = call.stream();
        call.spawn(move |_| drop(predicates::write_payloads(writer, count, size)));
        reader
    }

    fn echo(&mut self, _: &Call, data: Vec<u8>) -> Vec<u8> {
        data
    }

    fn tally(&mut self, _: &Call, amount: u64) -> u64 {
        self.sum += amount;
        self.sum
    }
}

/// Writes until the reader has enough or is gone.
fn write(writer: StreamWriter<Match>, count: u64) -> Result<(), Failure> {
    let contents = Contents::new();
    for n in 0..count {
        let Content {
            path,
            line,
            column,
            text,
            cut,
        } = contents.get(n);
        let found = MatchView {
            path,
            line,
            column,
            text,
            path_bytes: None,
            text_bytes: None,
            cut,
        };
        writer.send(&found)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thalweg::wire::Decode;

    use super::*;
    use crate::gate::Gate;
    use crate::lab::LabClient;

    #[test]
    fn what_is_read_is_what_was_promised() {
        let lab = LabClient::start(LabService::default).unwrap();
        lab.nop().wait().unwrap();
        lab.nop_async().wait().unwrap();
        let contents = Contents::new();
        let mut count = 0;
        for (n, found) in (0..).zip(lab.generate(20_000).wait().unwrap()) {
            let found = found.unwrap();
            let Content {
                path,
                line,
                column,
                text,
                cut,
            } = contents.get(n);
            assert_eq!(
                (found.path.as_str(), found.line, found.column),
                (path, line, column)
            );
            assert_eq!((found.text.as_str(), found.cut), (text, cut));
            count += 1;
        }
        assert_eq!(count, 20_000);
    }

    #[test]
    fn events_of_several_writers_come_whole_and_in_each_ones_order() {
        let lab = LabClient::start(LabService::default).unwrap();
        let mut next = [0; 4];
        for event in lab.feed(2_000, 16, 4, 40, 0).wait().unwrap() {
            let event = event.unwrap();
            let (writer, index) = (event.quote.number >> 40, event.quote.number & 0xffff);
            assert_eq!(index, next[writer as usize]);
            next[writer as usize] += 1;
            let (detail, payload) = ("d".repeat(24), vec![b'p'; 16]);
            let whole = events::event(event.quote.number, event.quote.number, &detail, &payload);
            assert_eq!(event.as_view(), whole);
        }
        assert_eq!(next, [500; 4]);
    }

    #[test]
    fn writers_wait_at_the_gate_and_carry_its_mark() {
        let next_gate = NextGate::default();
        let its = next_gate.clone();
        let lab = LabClient::start(move || LabService::at(its.clone())).unwrap();
        let gate = Gate::new(2);
        next_gate.set(Some(Arc::clone(&gate)));
        let mut stream = lab.ticks(3, 1).wait().unwrap();
        next_gate.set(None);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(gate.began(), None);
        let before = thalweg::queue::clock::now();
        let mark = gate.pass(std::thread::yield_now);
        assert_eq!(stream.next().unwrap().unwrap().number, mark);
        assert!(gate.began().unwrap() >= before);
    }

    #[test]
    fn an_event_that_is_due_says_when() {
        let lab = LabClient::start(LabService::default).unwrap();
        let began = thalweg::queue::clock::now();
        for (per_s, count) in [(100_000, 100_u64), (500, 3)] {
            let mut last = began;
            for event in lab.feed(count, 1, 1, 0, per_s).wait().unwrap() {
                let at = event.unwrap().quote.received_at;
                assert!(last < at && at <= thalweg::queue::clock::now());
                last = at;
            }
        }
        let mut last = began;
        for beat in lab.heartbeat(3, 1_000).wait().unwrap() {
            let at = beat.unwrap().at;
            assert!(last < at);
            last = at;
        }
    }

    #[test]
    fn what_is_asked_and_what_is_streamed_is_the_same() {
        let lab = LabClient::start(LabService::default).unwrap();
        for (n, asked) in (0..).zip(lab.parities(100).wait().unwrap()) {
            let Scalars { a, b, x } = asked.unwrap();
            assert_eq!(lab.parity(a, b, x).wait().unwrap(), n % 2 == 0);
        }
        for (n, asked) in (0..).zip(lab.payloads(100, 64).wait().unwrap()) {
            let data = asked.unwrap().data;
            assert_eq!(data.len(), 64);
            assert_eq!(lab.payload(&data).wait().unwrap(), n % 2 == 0);
        }
        for (n, tick) in (0..).zip(lab.ticks(100, 16).wait().unwrap()) {
            assert_eq!(tick.unwrap(), ticks::tick(n));
        }
        for (n, pulse) in (0..).zip(lab.pulses(100, 16).wait().unwrap()) {
            assert_eq!(pulse.unwrap(), ticks::pulse(n));
        }
    }

    #[test]
    fn echo_returns_the_same_bytes() {
        let lab = LabClient::start(LabService::default).unwrap();
        for data in [&b""[..], b"a\0b", &[7; 102_400]] {
            assert_eq!(lab.echo(data).wait().unwrap(), data);
        }
    }

    #[test]
    fn a_reader_that_leaves_ends_the_generator() {
        let lab = LabClient::start(LabService::default).unwrap();
        let mut stream = lab.generate(u64::MAX).wait().unwrap();
        assert_eq!(stream.next().unwrap().unwrap().line, 1);
        drop(stream);
        // The instance still serves: its generator does not hold the actor.
        lab.nop().wait().unwrap();
    }
}
