//! The bytes that a reader reads: one or two ranges, addressed by one offset.

/// A message, or the slots and tails of a batch. Offsets count from the first byte of the message
/// or batch.
///
/// Reading outside the ranges panics. A reader reads only what a [`Checker`](crate::Checker) has
/// checked.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    slots: &'a [u8],
    slots_at: u32,
    tails: &'a [u8],
    /// At or after the end of the slots. An offset below it is in the slots, any other in the
    /// tails.
    tails_at: u32,
}

impl<'a> Bytes<'a> {
    /// One range, as in a message.
    pub const fn message(bytes: &'a [u8]) -> Self {
        Bytes {
            slots: &[],
            slots_at: 0,
            tails: bytes,
            tails_at: 0,
        }
    }

    /// Two ranges that begin at the given offsets. The slots are before the tails.
    pub const fn batch(slots: &'a [u8], slots_at: u32, tails: &'a [u8], tails_at: u32) -> Self {
        Bytes {
            slots,
            slots_at,
            tails,
            tails_at,
        }
    }

    /// `size` bytes from `at`, if all of them exist.
    #[inline(always)]
    pub fn get(self, at: u32, size: u32) -> Option<&'a [u8]> {
        let (range, from) = if at < self.tails_at {
            (self.slots, at.checked_sub(self.slots_at)?)
        } else {
            (self.tails, at - self.tails_at)
        };
        let from = from as usize;
        range.get(from..from.checked_add(size as usize)?)
    }

    /// The bytes from `at` on: adjacent numbers, to be read with [`word`].
    #[inline(always)]
    pub fn words<const N: usize>(self, at: u32) -> [u8; N] {
        // The slots are tried first, and compared only with their own length. If the compiler knows
        // the length, as for a stream's record, it removes the check and the unused reads.
        let from = at.wrapping_sub(self.slots_at) as usize;
        let place = if from < self.slots.len() {
            self.slots[from..].first_chunk()
        } else {
            self.tails[at.wrapping_sub(self.tails_at) as usize..].first_chunk()
        };
        *place.expect("a checked field lies inside")
    }

    /// `size` bytes from `at` on: the elements of a list of a fixed length.
    #[inline(always)]
    pub(crate) fn items(self, at: u32, size: usize) -> &'a [u8] {
        // As in `words`.
        let from = at.wrapping_sub(self.slots_at) as usize;
        let range = if from < self.slots.len() {
            &self.slots[from..]
        } else {
            &self.tails[at.wrapping_sub(self.tails_at) as usize..]
        };
        range.get(..size).expect("a checked list lies inside")
    }

    /// The byte at `at`.
    #[inline]
    pub fn u8(self, at: u32) -> u8 {
        u8::from_le_bytes(self.words(at))
    }

    /// The two bytes at `at`.
    #[inline]
    pub fn u16(self, at: u32) -> u16 {
        u16::from_le_bytes(self.words(at))
    }

    /// The four bytes at `at`.
    #[inline]
    pub fn u32(self, at: u32) -> u32 {
        u32::from_le_bytes(self.words(at))
    }

    /// The eight bytes at `at`.
    #[inline]
    pub fn u64(self, at: u32) -> u64 {
        u64::from_le_bytes(self.words(at))
    }

    /// The bytes of the string or `list<u8>` whose `{offset, length}` is at `at`.
    #[inline(always)]
    pub fn tail(self, at: u32) -> &'a [u8] {
        let length = self.u32(at + 4);
        if length == 0 {
            return &[];
        }
        self.get(self.u32(at), length)
            .expect("a checked tail lies inside")
    }
}

/// The bytes of the number that begins at `at` in `words`.
///
/// ```
/// let words = [1, 0, 2, 0];
/// assert_eq!(u16::from_le_bytes(thalweg_wire::word(&words, 2)), 2);
/// ```
///
/// # Panics
/// The number is not completely inside `words`.
#[inline(always)]
pub fn word<const N: usize, const M: usize>(words: &[u8; M], from: usize) -> [u8; N] {
    *words[from..].first_chunk().expect("it is among them")
}
