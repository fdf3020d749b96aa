//! Functions with a stream or a future as a parameter, and functions that return one without
//! elements.

use crate::Runner;
use crate::calls::{compare, resource};
use crate::endings::{Called, finish};
use crate::streams::read;
use crate::values::Json;
use serde_json::Value;
use thalweg::port::{Upstream, UpstreamFuture};
use thalweg::wire::{Decode, Encode};
use thalweg_conformance::conformance::{ConformanceClient, Item};

/// A stream whose elements are sent by a thread.
fn stream<T>(elements: &Value) -> Upstream<T>
where
    T: Json + Decode + Encode<As = T> + Send + 'static,
{
    let (writer, stream) = Upstream::pair().expect("room for a stream");
    let elements = Vec::<T>::read(elements);
    std::thread::spawn(move || {
        let sent = elements.iter().try_for_each(|element| writer.send(element));
        // The service may have closed the stream.
        let _ = sent.and_then(|()| writer.end());
    });
    stream
}

/// A future with a value, or one that is dropped without a value.
fn future<T: Json + Decode + Encode<As = T>>(value: &Value) -> UpstreamFuture<T> {
    let (writer, future) = UpstreamFuture::pair().expect("room for a future");
    if let Some(value) = Option::<T>::read(value) {
        writer.set(&value).expect("nobody has closed it");
    }
    future
}

impl Runner {
    /// Makes the call of a step, if it is one of these functions.
    pub(crate) fn call_with_streams(
        &mut self,
        c: &ConformanceClient,
        step: &'static Value,
        method: usize,
        name: &str,
    ) -> Result<Called, String> {
        let at = |place: usize| &step["params"][place];
        match name {
            "sum-of" => {
                let sum = c.sum_of(stream(at(0)));
                finish(step, method, sum, move |_, came| {
                    compare(step, method, came)
                })
            }
            "names-of" => {
                let names = c.names_of(stream::<Item>(at(0)));
                finish(step, method, names, move |_, came| {
                    compare(step, method, came)
                })
            }
            "first-numbers" => {
                let first = c.first_numbers(u32::read(at(0)), stream(at(1)));
                finish(step, method, first, move |_, came| {
                    compare(step, method, came)
                })
            }
            "words-first" => {
                let both = c.words_first(stream(at(0)), stream(at(1)));
                finish(step, method, both, move |_, came| {
                    compare(step, method, came)
                })
            }
            "add-all" => {
                let sum = c.add_all(&self.counters[resource(step, 0)], stream(at(1)));
                finish(step, method, sum, move |_, came| {
                    compare(step, method, came)
                })
            }
            "hear" => finish(step, method, c.hear(future(at(0))), move |_, came| {
                compare(step, method, came)
            }),
            "beats-of" => finish(step, method, c.beats_of(stream(at(0))), move |_, came| {
                compare(step, method, came)
            }),
            "comes" => finish(step, method, c.comes(future(at(0))), move |_, came| {
                compare(step, method, came)
            }),
            "beats" => finish(step, method, c.beats(u64::read(at(0))), move |_, beats| {
                read(step, beats)
            }),
            "signal" => finish(
                step,
                method,
                c.signal(u32::read(at(0))),
                move |_, signal| read(step, signal.into_stream()),
            ),
            "ask-all" => finish(step, method, c.ask_all(stream(at(0))), move |_, came| {
                compare(step, method, came)
            }),
            other => self.call_for_elements(c, step, method, other),
        }
    }
}
