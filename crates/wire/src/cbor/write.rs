//! Writes CBOR items.

use super::float;

/// The major types: RFC 8949, 3.1.
pub(super) mod major {
    pub const UNSIGNED: u8 = 0;
    pub const NEGATIVE: u8 = 1;
    pub const BYTES: u8 = 2;
    pub const TEXT: u8 = 3;
    pub const ARRAY: u8 = 4;
    pub const MAP: u8 = 5;
    pub const TAG: u8 = 6;
    pub const SIMPLE: u8 = 7;
}

/// Appends items to a buffer, each in its shortest form.
///
/// ```
/// use thalweg_wire::cbor::Writer;
///
/// let mut to = Writer::new(Vec::new());
/// to.map(1);
/// to.text("line");
/// to.uint(500);
/// assert_eq!(to.finish(), b"\xa1\x64line\x19\x01\xf4");
/// ```
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Creates a writer. `buffer` is cleared and its memory is reused.
    pub fn new(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Writer { bytes: buffer }
    }

    /// Returns the written bytes.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn head(&mut self, major: u8, value: u64) {
        let major = major << 5;
        match value {
            0..24 => self.bytes.push(major | value as u8),
            24..0x100 => self.bytes.extend_from_slice(&[major | 24, value as u8]),
            0x100..0x1_0000 => self.wide(major | 25, (value as u16).to_be_bytes()),
            0x1_0000..0x1_0000_0000 => self.wide(major | 26, (value as u32).to_be_bytes()),
            _ => self.wide(major | 27, value.to_be_bytes()),
        }
    }

    fn wide<const N: usize>(&mut self, first: u8, rest: [u8; N]) {
        self.bytes.push(first);
        self.bytes.extend_from_slice(&rest);
    }

    /// Writes an unsigned integer.
    #[inline]
    pub fn uint(&mut self, value: u64) {
        self.head(major::UNSIGNED, value);
    }

    /// Writes a signed integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        if value < 0 {
            self.head(major::NEGATIVE, !value as u64);
        } else {
            self.head(major::UNSIGNED, value as u64);
        }
    }

    /// Writes a float of 32 bits, given as its bits.
    pub fn f32_bits(&mut self, bits: u32) {
        match float::f16_of_f32(bits) {
            Some(half) => self.wide(major::SIMPLE << 5 | 25, half.to_be_bytes()),
            None => self.wide(major::SIMPLE << 5 | 26, bits.to_be_bytes()),
        }
    }

    /// Writes a float of 64 bits, given as its bits.
    pub fn f64_bits(&mut self, bits: u64) {
        match float::f32_of_f64(bits) {
            Some(single) => self.f32_bits(single),
            None => self.wide(major::SIMPLE << 5 | 27, bits.to_be_bytes()),
        }
    }

    /// Writes `false` or `true`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(major::SIMPLE << 5 | (20 + u8::from(value)));
    }

    /// Writes `null`.
    #[inline]
    pub fn null(&mut self) {
        self.bytes.push(major::SIMPLE << 5 | 22);
    }

    /// Writes a text.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.head(major::TEXT, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Writes a byte string.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.head(major::BYTES, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes the head of a byte string, and returns its zeroed bytes to be filled in.
    #[inline]
    pub(super) fn room(&mut self, size: usize) -> &mut [u8] {
        self.head(major::BYTES, size as u64);
        let from = self.bytes.len();
        self.bytes.resize(from + size, 0);
        &mut self.bytes[from..]
    }

    /// Writes the head of an array. Its items must follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.head(major::ARRAY, count as u64);
    }

    /// Writes the head of a map. The key and value of each entry must follow, with the keys in the
    /// order of their encoded bytes.
    #[inline]
    pub fn map(&mut self, count: usize) {
        self.head(major::MAP, count as u64);
    }

    /// Writes flags: those of `names` whose bits are set. The first name has the lowest bit.
    pub fn flags<'n>(&mut self, bits: u32, names: impl Iterator<Item = &'n str>) {
        self.array(bits.count_ones() as usize);
        for (bit, name) in names.enumerate() {
            if bits & (1 << bit) != 0 {
                self.text(name);
            }
        }
    }

    /// Writes a tag, which applies to the next item.
    #[inline]
    pub fn tag(&mut self, tag: u64) {
        self.head(major::TAG, tag);
    }
}
