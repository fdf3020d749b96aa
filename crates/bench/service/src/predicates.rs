//! The predicates that calls with contents evaluate. The caller can check every reply.

use thalweg::port::{Failure, StreamWriter};

use crate::lab::{BytesPayload, BytesPayloadView, Scalars};

/// The scalars of call number `n`: `parity` is true where `n` is even.
#[must_use]
#[inline]
pub fn scalars(n: u64) -> Scalars {
    let a = n.cast_signed();
    Scalars {
        a,
        b: 2 * a,
        x: 2.0,
    }
}

/// Whether `a + b + x` is even; a sum that is no whole number is not.
#[must_use]
#[inline]
pub fn parity(a: i64, b: i64, x: f64) -> bool {
    (a.wrapping_add(b) as f64 + x) % 2.0 == 0.0
}

/// Fills `data` with the bytes of call number `n`: `payload` is true where `n` is even.
#[inline]
pub fn fill(data: &mut [u8], n: u64) {
    let byte = (n % 256) as u8;
    if let [first, .., last] = data {
        (*first, *last) = (byte, byte);
    }
}

/// Whether the first byte is even and the last one is the same.
#[must_use]
#[inline]
pub fn payload(data: &[u8]) -> bool {
    matches!(data, [first, .., last] if first == last && first % 2 == 0)
}

pub(crate) fn write_scalars(writer: StreamWriter<Scalars>, count: u64) -> Result<(), Failure> {
    for n in 0..count {
        writer.send(&scalars(n))?;
    }
    writer.finish()
}

pub(crate) fn write_payloads(
    writer: StreamWriter<BytesPayload>,
    count: u64,
    size: u32,
) -> Result<(), Failure> {
    let mut data = vec![0; size as usize];
    for n in 0..count {
        fill(&mut data, n);
        let data = (&data).into();
        writer.send(&BytesPayloadView { data })?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_call_is_true() {
        let mut data = [9; 64];
        for n in 0..600 {
            let Scalars { a, b, x } = scalars(n);
            assert_eq!(parity(a, b, x), n % 2 == 0, "{n}");
            fill(&mut data, n);
            assert_eq!(payload(&data), n % 2 == 0, "{n}");
        }
        assert!(!parity(0, 0, 0.5) && !payload(&[]) && !payload(&[2, 4]));
    }
}
