//! The service. Each delay and each timer is an actor that sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::port::{Call, Failure, StreamReader, StreamWriter, Task};
use thalweg::runtime::sleep_until;

use crate::echo::{
    ComplexRequest, ComplexResponse, Echo, Request, Response, Tick, Timer, TimerError,
};

/// The maximum delay in milliseconds.
const LONGEST: u32 = 60 * 60 * 1_000;
/// The interval at which a timer checks whether its stream still has a reader.
const LOOK: Duration = Duration::from_millis(100);

/// The service. The interface documents its functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct EchoService;

/// The state of a timer.
#[derive(Debug)]
pub struct NamedTimer {
    name: Arc<str>,
}

fn duration(ms: u32) -> Result<Duration, TimerError> {
    if ms > LONGEST {
        return Err(TimerError::TooLong(ms));
    }
    Ok(Duration::from_millis(ms.into()))
}

impl Echo for EchoService {
    type Timer = NamedTimer;

    fn timer(&mut self, _: &Call, name: String) -> Result<NamedTimer, TimerError> {
        if name.is_empty() {
            return Err(TimerError::NoName);
        }
        Ok(NamedTimer { name: name.into() })
    }

    fn version(&mut self, _: &Call) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }
}

impl Timer for NamedTimer {
    fn echo(self: Arc<Self>, _: &Call, request: Request) -> Task<Result<Response, TimerError>> {
        let Request { message, delay_ms } = request;
        let delay = match duration(delay_ms) {
            Ok(delay) => delay,
            Err(error) => return Task::ready(Err(error)),
        };
        let name = Arc::clone(&self.name);
        Task::new(move |_| {
            // A call that is cancelled or past its deadline ends here.
            sleep_until(Instant::now() + delay);
            Ok(Response {
                message,
                name: name.to_string(),
            })
        })
    }

    fn complex(&self, _: &Call, request: ComplexRequest) -> ComplexResponse {
        let ComplexRequest {
            messages,
            tags,
            note,
            retries,
        } = request;
        let retries = retries.map_or_else(|| "none".to_owned(), |retries| retries.to_string());
        let (messages, tags) = (messages.len(), tags.join(" "));
        ComplexResponse {
            summary: format!(
                "{messages} messages, tags: {tags}, note: {}, retries: {retries}",
                note.as_deref().unwrap_or("none"),
            ),
            item_count: messages as u64,
            has_note: note.is_some(),
        }
    }

    fn schedule(
        &self,
        call: &Call,
        every_ms: u32,
        times: u32,
    ) -> Result<StreamReader<Tick, TimerError>, TimerError> {
        let every = duration(every_ms)?;
        if every.is_zero() {
            return Err(TimerError::TooShort);
        }
        let (ticks, reader) = call.stream();
        call.spawn(move |_| drop(fire(ticks, every, times)));
        Ok(reader)
    }
}

/// Fires `times` times, or until the stream has no reader. Each time is computed from the start
/// time, so delays do not accumulate.
fn fire(ticks: StreamWriter<Tick, TimerError>, every: Duration, times: u32) -> Result<(), Failure> {
    let mut due = Instant::now();
    for number in 1..=if times == 0 { u32::MAX } else { times } {
        due += every;
        while due.saturating_duration_since(Instant::now()) > LOOK {
            sleep_until(Instant::now() + LOOK);
            ticks.check()?;
        }
        sleep_until(due);
        let late_ns = due.elapsed().as_nanos() as u64;
        ticks.send(&Tick { number, late_ns })?;
    }
    ticks.finish()
}
