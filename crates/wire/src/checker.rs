//! The single pass that checks a received message or record.

use crate::{Bytes, Decode, MAX_DEPTH, MAX_UNSIZED, Malformed, Rule};

/// Checks a message or record in one pass and tracks where the next tail may begin.
#[derive(Debug)]
pub struct Checker<'a> {
    bytes: Bytes<'a>,
    /// End of the last tail. No tail may begin before it.
    next_tail: u32,
    /// Handles in the table, and how many of them the pass has reached.
    handles: u32,
    handles_met: u32,
}

impl<'a> Checker<'a> {
    /// A check of `bytes`, whose first tail begins at `first_tail` or later. `handles` is the
    /// length of the table of handles.
    pub fn new(bytes: Bytes<'a>, first_tail: u32, handles: u32) -> Self {
        Checker {
            bytes,
            next_tail: first_tail,
            handles,
            handles_met: 0,
        }
    }

    /// Checks the value whose fixed part is at `at`, which must be aligned, and that every handle
    /// is used.
    ///
    /// # Errors
    /// The first rule that the message breaks.
    pub fn whole<T: Decode>(&mut self, at: u32) -> Result<(), Malformed> {
        const {
            assert!(
                T::DEPTH <= MAX_DEPTH,
                "the type is nested too deeply for a message"
            )
        };
        if T::SIZE > 0 && self.bytes.get(at, T::SIZE).is_none() {
            return Err(self.broken(Rule::Root, at));
        }
        T::check(self, at)?;
        self.all_handles_met(at)
    }

    /// Checks that every handle of a value at `at` is used.
    #[inline(always)]
    pub(crate) fn all_handles_met(&self, at: u32) -> Result<(), Malformed> {
        if self.handles_met != self.handles {
            return Err(self.broken(Rule::Handles, at));
        }
        Ok(())
    }

    /// The bytes that are checked.
    #[inline]
    pub fn bytes(&self) -> Bytes<'a> {
        self.bytes
    }

    /// The end of the last tail so far.
    #[inline]
    pub fn end(&self) -> u32 {
        self.next_tail
    }

    /// An error at `at`.
    #[cold]
    pub fn broken(&self, rule: Rule, at: u32) -> Malformed {
        Malformed { rule, at }
    }

    /// Claims the tail whose `{offset, length}` is at `at`, with elements of `size` bytes. Returns
    /// the offset of the first element and the number of elements.
    ///
    /// # Errors
    /// The tail is outside the message, out of order or misaligned, or breaks the rules for lists
    /// without bytes.
    #[inline(always)]
    pub fn list(&mut self, at: u32, size: u32, align: u32) -> Result<(u32, u32), Malformed> {
        let (offset, count) = (self.bytes.u32(at), self.bytes.u32(at + 4));
        if count == 0 || size == 0 {
            if offset != 0 {
                return Err(self.broken(Rule::EmptyOffset, at));
            }
            if count > MAX_UNSIZED {
                return Err(self.broken(Rule::Unsized, at));
            }
            return Ok((0, count));
        }
        if offset % align != 0 {
            return Err(self.broken(Rule::Alignment, at));
        }
        if offset < self.next_tail {
            return Err(self.broken(Rule::Order, at));
        }
        let bytes = count.checked_mul(size);
        match bytes.and_then(|bytes| self.bytes.get(offset, bytes)) {
            Some(tail) => self.next_tail = offset + tail.len() as u32,
            None => return Err(self.broken(Rule::Bounds, at)),
        }
        Ok((offset, count))
    }

    /// Claims the handle whose number is at `at`.
    ///
    /// # Errors
    /// The handle is not the next one in the table.
    pub fn handle(&mut self, at: u32) -> Result<(), Malformed> {
        let index = self.bytes.u32(at);
        if index != self.handles_met || index >= self.handles {
            return Err(self.broken(Rule::Handles, at));
        }
        self.handles_met += 1;
        Ok(())
    }

    /// Checks a word of flags. `bits` are the defined ones.
    ///
    /// # Errors
    /// An undefined bit is set.
    pub fn flags(&self, at: u32, word: u32, bits: u32) -> Result<(), Malformed> {
        if bits < 32 && word >> bits != 0 {
            return Err(self.broken(Rule::Flags, at));
        }
        Ok(())
    }
}
