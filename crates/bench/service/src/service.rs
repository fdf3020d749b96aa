//! The service: as little as there can be.

use thalweg::port::{Call, StreamReader, StreamWriter, Task};

use crate::content::{Content, Contents};
use crate::events;
use crate::lab::{Event, Lab, Match, MatchView};

/// It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabService;

impl Lab for LabService {
    fn nop(&mut self, _: &Call) {}

    fn nop_async(&mut self, _: &Call) -> Task<()> {
        Task::new(|_| ())
    }

    fn generate(&mut self, call: &Call, count: u64) -> StreamReader<Match> {
        let (writer, reader) = call.stream();
        call.spawn(move |_| write(&writer, count));
        reader
    }

    fn events(&mut self, call: &Call, count: u64, batch: u32) -> StreamReader<Event> {
        let (writer, reader) = call.stream();
        call.spawn(move |_| events::write(&writer, count, batch));
        reader
    }
}

/// Writes until the reader has enough or is gone.
fn write(writer: &StreamWriter<Match>, count: u64) {
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
        if writer.send(&found).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::LabClient;

    #[test]
    fn what_is_read_is_what_was_promised() {
        let lab = LabClient::start(|| LabService).unwrap();
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
    fn a_reader_that_leaves_ends_the_generator() {
        let lab = LabClient::start(|| LabService).unwrap();
        let mut stream = lab.generate(u64::MAX).wait().unwrap();
        assert_eq!(stream.next().unwrap().unwrap().line, 1);
        drop(stream);
        // The instance still serves: its generator does not hold the actor.
        lab.nop().wait().unwrap();
    }
}
