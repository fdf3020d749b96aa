//! Adds the options of the `.thalweg.toml` to the documentation of functions, so that it appears in
//! every language.

use crate::model::{
    Function, OverflowPolicy, StreamOptions, TypeDef, is_stream_or_future, stream_fields,
};
use std::time::Duration;

/// Adds a paragraph to the documentation of each function that returns a stream, and of each that
/// has a timeout.
pub fn add(types: &[TypeDef], functions: &mut [Function]) {
    for function in functions {
        let stream = function
            .stream
            .map(|options| stream_paragraph(types, function, options));
        let timeout = timeout_paragraph(function.options.timeout_ns, stream.is_some());
        for paragraph in stream.into_iter().chain(timeout) {
            if !function.docs.is_empty() {
                function.docs.push_str("\n\n");
            }
            function.docs.push_str(&paragraph);
        }
    }
}

fn timeout_paragraph(timeout_ns: u64, has_stream: bool) -> Option<String> {
    if timeout_ns == 0 {
        return None;
    }
    let subject = match has_stream {
        true => "A call and its streams end",
        false => "A call ends",
    };
    let timeout = Duration::from_nanos(timeout_ns);
    Some(format!(
        "{subject} after {timeout:?} at the latest, even if the caller's deadline is later."
    ))
}

fn stream_paragraph(types: &[TypeDef], function: &Function, options: StreamOptions) -> String {
    let key = match options.overflow {
        OverflowPolicy::Conflate { key } => {
            stream_fields(types, function).map_or("", |fields| &fields[key].name)
        }
        _ => "",
    };
    let subject = match function.ok.as_ref().is_some_and(is_stream_or_future) {
        true => "The stream",
        false => "Each stream in the result",
    };
    format!("{subject} {}", overflow_sentence(options, key))
}

/// The behaviour of a full stream, as the predicate of a sentence.
fn overflow_sentence(options: StreamOptions, key: &str) -> String {
    let capacity = options.capacity;
    let records = format!("holds {capacity} unread records; when it is full,");
    match options.overflow {
        OverflowPolicy::Block => format!("{records} the writer waits."),
        OverflowPolicy::Fail => format!("{records} the writer gets an error."),
        OverflowPolicy::DropNewest => format!("{records} new records are dropped and counted."),
        OverflowPolicy::DropOldest => {
            format!("{records} the oldest records are dropped and counted.")
        }
        OverflowPolicy::Latest => {
            "holds one unread record; a newer record replaces it, which is counted.".to_owned()
        }
        OverflowPolicy::Conflate { .. } => format!(
            "holds one unread record for each of up to {capacity} values of `{key}`; a newer record replaces it, which is counted."
        ),
    }
}
