//! Functions that read a stream or a future.

use thalweg::Failure;
use thalweg::port::{Upstream, UpstreamFuture};

use crate::conformance::Item;

/// The number of the outcome code of a stream that did not end regularly.
fn number(why: Failure) -> u32 {
    why.code as u32
}

/// The number of elements and their sum.
pub(crate) fn sum(mut numbers: Upstream<u64>) -> Result<(u64, u64), u32> {
    numbers.try_fold((0, 0u64), |(count, sum), number| match number {
        Ok(number) => Ok((count + 1, sum.wrapping_add(number))),
        Err(why) => Err(self::number(why)),
    })
}

/// The concatenated names.
pub(crate) fn names(items: Upstream<Item>) -> String {
    items.map_while(Result::ok).map(|item| item.name).collect()
}

/// The first numbers. Then the stream is closed.
pub(crate) fn first(count: u32, numbers: Upstream<u64>) -> Vec<u64> {
    let numbers = numbers.map_while(Result::ok);
    numbers.take(count as usize).collect()
}

/// Reads all words before the first number.
pub(crate) fn words_first(numbers: Upstream<u64>, words: Upstream<String>) -> (String, u64) {
    let words = words.map_while(Result::ok).collect();
    (words, numbers.map_while(Result::ok).sum())
}

/// The number of elements.
pub(crate) fn beats(beats: Upstream<()>) -> u64 {
    beats.map_while(Result::ok).count() as u64
}

/// The value of the future.
pub(crate) fn come<T: thalweg::wire::Decode>(future: UpstreamFuture<T>) -> Result<T, u32> {
    future.wait().map_err(number)
}
