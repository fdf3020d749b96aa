//! A codec with its value: the cost of writing it, copying it out, dropping the copy, and reading
//! it in place.

use std::hint::black_box;
use std::time::Instant;

use thalweg_peers::codec::{Codec, InPlace, Value};

use crate::cell::Sample;
use crate::problem::Problem;

/// Writing a value into existing memory.
pub const ENCODE: &str = "encode";
/// Checking it and copying it out.
pub const DECODE: &str = "decode";
/// Dropping the copy.
pub const FREE: &str = "free";
/// Checking it and reading every field in place; only if the codec supports it.
pub const VIEW: &str = "view";

/// The metric with the bytes of the encoded value.
pub const BYTES: &str = "bytes";

/// Takes the next sample: the ns of one value for each operation. The sample's own time is the sum.
pub type Sampler = Box<dyn FnMut() -> Result<Sample, Problem>>;

/// A codec with a value.
pub struct Subject {
    /// The codec's public name.
    pub name: &'static str,
    /// Measures.
    pub sample: Sampler,
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(self.name)
    }
}

/// The number of values that are copied out before they are dropped: at most two blobs of 1 MiB, or
/// 64 values, are in memory at a time.
fn at_a_time(bytes: usize) -> usize {
    ((2 << 20) / bytes.max(1)).clamp(2, 64)
}

fn wrong(name: &str, what: &str) -> Problem {
    Problem::Check(format!("{name}: {what}"))
}

/// `C` with `value`; a sample handles about `total` bytes.
///
/// # Errors
/// Decoding does not return the encoded value.
pub fn subject<V: Value, C: Codec<V>>(value: &V, total: usize) -> Result<Subject, Problem> {
    build::<V, C>(value, total, None)
}

/// The same for a codec that can read in place.
///
/// # Errors
/// Decoding or reading in place does not return the encoded value.
pub fn in_place<V: Value, C: InPlace<V>>(value: &V, total: usize) -> Result<Subject, Problem> {
    build::<V, C>(value, total, Some(C::view))
}

fn build<V: Value, C: Codec<V>>(
    value: &V,
    total: usize,
    view: Option<fn(&C::Buffer) -> u64>,
) -> Result<Subject, Problem> {
    let own = C::own(value);
    let mut buffer = C::Buffer::default();
    let bytes = C::encode(&own, &mut buffer);
    if C::value(&C::decode(&buffer)) != *value {
        return Err(wrong(C::NAME, "decoding returns another value"));
    }
    let sum = value.sum();
    if view.is_some_and(|view| view(&buffer) != sum) {
        return Err(wrong(C::NAME, "reading in place returns another value"));
    }
    // For a small value the cost does not depend on its bytes.
    let count = (total / (bytes + 500)).clamp(16, 20_000);
    let chunk = at_a_time(bytes).min(count);
    let mut copies = Vec::with_capacity(chunk);
    let sample = move || {
        let began = Instant::now();
        let mut written = 0;
        for _ in 0..count {
            written += C::encode(black_box(&own), &mut buffer);
            black_box(&buffer);
        }
        let encode = began.elapsed();
        if written != count * bytes {
            return Err(wrong(C::NAME, "one was written in another length"));
        }

        let (mut decode, mut free) = (0, 0);
        let chunks = count / chunk;
        for _ in 0..chunks {
            let began = Instant::now();
            for _ in 0..chunk {
                copies.push(C::decode(black_box(&buffer)));
            }
            let copied = began.elapsed();
            black_box(&mut copies).clear();
            free += (began.elapsed() - copied).as_nanos();
            decode += copied.as_nanos();
        }
        let copied = (chunks * chunk) as f64;

        let mut times = vec![
            (ENCODE, encode.as_nanos() as f64 / count as f64),
            (DECODE, decode as f64 / copied),
            (FREE, free as f64 / copied),
        ];
        if let Some(view) = view {
            let began = Instant::now();
            let mut seen = 0u64;
            for _ in 0..count {
                seen = seen.wrapping_add(view(black_box(&buffer)));
            }
            let elapsed = began.elapsed();
            if seen != sum.wrapping_mul(count as u64) {
                return Err(wrong(C::NAME, "one was read as another value"));
            }
            times.push((VIEW, elapsed.as_nanos() as f64 / count as f64));
        }
        let sample = Sample {
            ns: times.iter().map(|(_, ns)| ns).sum(),
            ..Sample::default()
        }
        .with(BYTES, bytes as f64);
        let with_time = |sample: Sample, (operation, ns)| sample.with(operation, ns);
        Ok(times.into_iter().fold(sample, with_time))
    };
    Ok(Subject {
        name: C::NAME,
        sample: Box::new(sample),
    })
}
