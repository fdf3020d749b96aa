//! Reads and checks streams, and stores streams by name.

use crate::Runner;
use crate::endings::{Verdict, ends, expect};
use crate::values::{Json, same};
use serde_json::Value;
use std::ops::ControlFlow::{Break, Continue};
use std::sync::{Arc, Mutex};
use thalweg::port::stream::{Event, Subscription};
use thalweg::port::{CallError, Code, Failure, Reason, StreamError, StreamReader};
use thalweg::wire::Decode;

/// The contents of a stream.
pub(crate) struct Seen<T> {
    all: Vec<T>,
    controls: Vec<T>,
    lost: u64,
    /// The reason of the last gap.
    gap: Option<Reason>,
    ending: Option<Ending>,
}

/// The outcome of a stream that did not end regularly.
#[derive(Debug)]
struct Ending {
    code: Code,
    message: String,
    /// The error of the service.
    error: Option<Value>,
}

/// The contents with typed elements. `read` converts a value of the file.
pub(crate) trait Ended {
    fn failure(&self) -> Option<&Failure>;
    fn error(&self) -> Option<Value>;
    fn read(written: &Value) -> Value;
}

impl Ended for Failure {
    fn failure(&self) -> Option<&Failure> {
        Some(self)
    }

    fn error(&self) -> Option<Value> {
        None
    }

    fn read(written: &Value) -> Value {
        written.clone()
    }
}

impl<E: Json> Ended for CallError<E> {
    fn failure(&self) -> Option<&Failure> {
        match self {
            CallError::Service(_) => None,
            CallError::Ended(failure) => Some(failure),
        }
    }

    fn error(&self) -> Option<Value> {
        match self {
            CallError::Service(error) => Some(error.show()),
            CallError::Ended(_) => None,
        }
    }

    fn read(written: &Value) -> Value {
        E::read(written).show()
    }
}

impl Ending {
    fn of(ended: &impl Ended) -> Self {
        Ending {
            code: ended.failure().map_or(Code::Error, |failure| failure.code),
            message: ended
                .failure()
                .map_or_else(String::new, |failure| failure.message.clone()),
            error: ended.error(),
        }
    }
}

/// A stream of numbers that is stored by name. Other streams are read immediately.
pub(crate) enum Kept {
    Reader(StreamReader<u64>),
    Subscribed(Subscription<u64>, Arc<Mutex<Seen<u64>>>),
}

impl<T: Json + Decode> Seen<T> {
    fn new() -> Self {
        Seen {
            all: Vec::new(),
            controls: Vec::new(),
            lost: 0,
            gap: None,
            ending: None,
        }
    }

    fn lose(&mut self, lost: u64, why: Option<Reason>) {
        self.lost += lost;
        self.gap = why.or(self.gap);
    }

    fn check<E: Ended>(&self, expected: &Value) -> Verdict {
        let ending = &self.ending;
        let ended = ending.as_ref().map_or("ok", |ending| ending.code.name());
        expect("stream ended", ending, ends(expected, ended))?;
        let error = ending.as_ref().and_then(|ending| ending.error.clone());
        let right = |wanted: &Value| error.as_ref() == Some(&E::read(wanted));
        expect("error", &error, expected.get("error").is_none_or(right))?;
        let message = ending.as_ref().map_or("", |ending| &ending.message);
        let part = expected["message"].as_str().unwrap_or_default();
        expect("message", message, message.contains(part))?;
        let (count, lost) = (self.all.len() as u64, self.lost);
        let is = |key: &str, right: &dyn Fn(&Value) -> bool| {
            let came = format!("{count} read, {lost} lost, {:?}", self.gap);
            expect(key, came, expected.get(key).is_none_or(right))
        };
        let one = |element: Option<&T>, wanted: &Value| element.is_some_and(|e| same(e, wanted));
        is("elements", &|elements| same(&self.all, elements))?;
        is("controls", &|controls| same(&self.controls, controls))?;
        is("first", &|first| one(self.all.first(), first))?;
        is("last", &|last| one(self.all.last(), last))?;
        is("count", &|wanted| wanted.as_u64() == Some(count))?;
        is("total", &|total| total.as_u64() == Some(count + lost))?;
        is("gap", &|gap| gap.as_u64() == self.gap.map(|why| why as u64))
    }
}

fn most(expected: &Value) -> usize {
    expected["take"]
        .as_u64()
        .map_or(usize::MAX, |take| take as usize)
}

/// Reads and checks a stream.
pub(crate) fn read<T, E>(step: &Value, mut reader: StreamReader<T, E>) -> Verdict
where
    T: Json + Decode,
    E: StreamError<Ended: Ended>,
{
    let expected = &step["stream"];
    let (most, mut seen) = (most(expected), Seen::new());
    while seen.all.len() < most {
        let left = (most - seen.all.len()).min(100);
        match reader.next_batch(left as u32, u64::MAX) {
            Ok(Some(batch)) => {
                seen.lose(batch.lost_before(), batch.lost_reason());
                let to = if batch.is_control() {
                    &mut seen.controls
                } else {
                    &mut seen.all
                };
                to.extend(batch.iter().map(T::owned));
                continue;
            }
            Ok(None) => {}
            Err(ended) => seen.ending = Some(Ending::of(&ended)),
        }
        let (lost, reason) = reader.lost_at_end();
        seen.lose(lost, reason);
        break;
    }
    drop(reader);
    seen.check::<E::Ended>(expected)
}

/// Subscribes a callback, which takes at most `take` records.
fn subscribe(reader: StreamReader<u64>, most: usize) -> Result<Kept, Failure> {
    let seen = Arc::new(Mutex::new(Seen::new()));
    let there = Arc::clone(&seen);
    let subscription = reader.subscribe(move |event| {
        let mut seen = there.lock().expect("no test panicked");
        match event {
            Event::Records(records) if records.is_control() => seen.controls.extend(records.iter()),
            Event::Records(records) => {
                seen.lose(records.lost_before(), records.lost_reason());
                seen.all.extend(records.iter());
                if seen.all.len() >= most {
                    seen.all.truncate(most);
                    return Break(());
                }
            }
            Event::Ended {
                result,
                lost,
                reason,
            } => {
                seen.lose(lost, reason);
                seen.ending = result.err().map(|ended| Ending::of(&ended));
            }
        }
        Continue(())
    })?;
    Ok(Kept::Subscribed(subscription, seen))
}

impl Runner {
    /// Stores the stream of a call if the step has a name for it, and reads it otherwise.
    pub(crate) fn take(&mut self, step: &Value, stream: StreamReader<u64>) -> Verdict {
        let Some(name) = step["bind"].as_str() else {
            return read(step, stream);
        };
        self.streams.insert(name.to_owned(), Kept::Reader(stream));
        Ok(())
    }

    /// Executes a step about a stored stream.
    pub(crate) fn stream(&mut self, step: &Value) -> Verdict {
        let name = |key: &str| step[key].as_str();
        let failed = |failure: Failure| failure.to_string();
        if let Some(bind) = name("bind") {
            let Kept::Reader(reader) = &self.streams[name("tee").expect("a stream")] else {
                return Err("a further reader of a callback's stream".to_owned());
            };
            let tee = Kept::Reader(reader.tee().map_err(failed)?);
            self.streams.insert(bind.to_owned(), tee);
            return Ok(());
        }
        if let Some(about) = name("stats") {
            return self.streams[about].check_stats(step);
        }
        let about = name("read").or(name("subscribe")).expect("a step");
        match self.streams.remove(about).expect("a stream of this name") {
            Kept::Reader(reader) if name("read").is_some() => read(step, reader),
            Kept::Reader(reader) => {
                let kept = subscribe(reader, most(step)).map_err(failed)?;
                self.streams.insert(about.to_owned(), kept);
                Ok(())
            }
            Kept::Subscribed(subscription, seen) => {
                subscription.join(u64::MAX).map_err(failed)?;
                let seen = seen.lock().expect("no test panicked");
                seen.check::<Failure>(&step["stream"])
            }
        }
    }
}

impl Kept {
    fn check_stats(&self, step: &Value) -> Verdict {
        let stats = match self {
            Kept::Reader(reader) => reader.stats(),
            Kept::Subscribed(subscription, _) => subscription.stats(),
        };
        let counts = stats.counts;
        let all = [
            ("streams", stats.streams),
            ("published", counts.published),
            ("delivered", counts.delivered),
            ("undelivered", counts.undelivered),
            ("occupancy", stats.occupancy),
            ("lost", Reason::ALL.map(|why| counts.lost(why)).iter().sum()),
            ("control", stats.control),
        ];
        all.into_iter().try_for_each(|(key, is)| {
            let right = step
                .get(key)
                .is_none_or(|wanted| wanted.as_u64() == Some(is));
            expect(key, is, right)
        })
    }
}
