//! Streams and futures inside results.

use crate::conformance::{Feed, Point};
use crate::made::{later, stream_of};
use thalweg::port::{FutureReader, Owned};
use thalweg::{Call, Failure, StreamReader};

/// The result of `mixed`.
pub(crate) type Mixed = (Owned<StreamReader<()>>, Owned<FutureReader<Point>>);

/// A feed of these numbers.
pub(crate) fn feed(
    call: &Call,
    name: &str,
    numbers: impl Iterator<Item = u64> + Send + 'static,
    last: Option<String>,
) -> Feed {
    let make = || -> Result<Feed, Failure> {
        let last = last.map(|text| call.own_future(later(call, 0, text)));
        Ok(Feed {
            name: name.to_owned(),
            numbers: call.own_stream(stream_of(call, numbers))?,
            last: last.transpose()?,
        })
    };
    make().expect("there are as many handles")
}

/// The feed at `place`.
pub(crate) fn feed_at(call: &Call, place: u32) -> Feed {
    let name = place.to_string();
    let last = (place % 2 == 1).then(|| name.clone());
    feed(call, &name, 0..place.into(), last)
}

pub(crate) fn mixed(call: &Call, count: u32) -> Result<Mixed, Feed> {
    if count == 0 {
        return Err(feed(call, "none", 0..3, None));
    }
    let mixed = || -> Result<Mixed, Failure> {
        let point = Point {
            x: count as i32,
            y: 0,
        };
        Ok((
            call.own_stream(stream_of(call, (0..count).map(drop)))?,
            call.own_future(later(call, 1, point))?,
        ))
    };
    Ok(mixed().expect("there are as many handles"))
}
