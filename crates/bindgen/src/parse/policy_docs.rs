//! What the `.thalweg.toml` says, as words in a function's documentation: no language's users need to look it up elsewhere.

use crate::model::{
    Function, OverflowPolicy, StreamOptions, TypeDef, is_stream_or_future, stream_fields,
};
use std::time::Duration;

/// Adds a paragraph to the documentation of each function that has a stream, and of each that has a deadline.
pub fn add(types: &[TypeDef], functions: &mut [Function]) {
    for function in functions {
        let stream = function
            .stream
            .map(|options| of_stream(types, function, options));
        let deadline = match function.options.timeout_ns {
            0 => None,
            ns => Some(format!(
                "A call has {:?} at most, whatever deadline its caller gives{}.",
                Duration::from_nanos(ns),
                match stream {
                    Some(_) => ", and what it gives ends with it",
                    None => "",
                }
            )),
        };
        for words in stream.into_iter().chain(deadline) {
            if !function.docs.is_empty() {
                function.docs.push_str("\n\n");
            }
            function.docs.push_str(&words);
        }
    }
}

fn of_stream(types: &[TypeDef], function: &Function, options: StreamOptions) -> String {
    let key = match options.overflow {
        OverflowPolicy::Conflate { key } => {
            stream_fields(types, function).map_or("", |fields| &fields[key].name)
        }
        _ => "",
    };
    let words = words(options, key);
    match function.ok.as_ref().is_some_and(is_stream_or_future) {
        true => words,
        false => format!(
            "For each stream in what it gives: {}",
            words.replacen('W', "w", 1)
        ),
    }
}

fn words(options: StreamOptions, key: &str) -> String {
    let capacity = options.capacity;
    match options.overflow {
        OverflowPolicy::Block => {
            format!("Where its reader is slow, the writer waits; it holds {capacity} records.")
        }
        OverflowPolicy::Latest => {
            "Where its reader is slow, a newer record replaces the one that waits, which is counted."
                .to_owned()
        }
        OverflowPolicy::DropNewest => {
            format!(
                "Where its reader is slow, new records are dropped and counted; it holds {capacity}."
            )
        }
        OverflowPolicy::DropOldest => {
            format!(
                "Where its reader is slow, the oldest records are dropped and counted; it holds {capacity}."
            )
        }
        OverflowPolicy::Conflate { .. } => {
            format!(
                "Where its reader is slow, a newer record replaces the one that waits and has the same `{key}`, which is counted; it holds \
                 {capacity}, each with another one."
            )
        }
        OverflowPolicy::Fail => {
            format!("Where its reader is slow, the writer is refused; it holds {capacity} records.")
        }
    }
}
