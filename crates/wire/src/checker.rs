//! The one walk over what came in.

use crate::{Bytes, Decode, MAX_DEPTH, MAX_UNSIZED, Malformed, Rule};

/// Walks over a message or record once, keeping account of where the next tail may begin.
#[derive(Debug)]
pub struct Checker<'a> {
    bytes: Bytes<'a>,
    /// End of the last tail: none may begin before.
    next_tail: u32,
    /// Handles in the table, and how many of them were met.
    handles: u32,
    handles_met: u32,
}

impl<'a> Checker<'a> {
    /// A walk over `bytes`, whose first tail begins at `first_tail` or later. `handles` is the length of the table.
    pub fn new(bytes: Bytes<'a>, first_tail: u32, handles: u32) -> Self {
        Checker {
            bytes,
            next_tail: first_tail,
            handles,
            handles_met: 0,
        }
    }

    /// Checks the value whose fixed part stands at `at`, which must be aligned, and that no handle is left over.
    ///
    /// # Errors
    /// The first rule that is broken.
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

    /// That no handle is left over of a value at `at`.
    #[inline(always)]
    pub(crate) fn all_handles_met(&self, at: u32) -> Result<(), Malformed> {
        if self.handles_met != self.handles {
            return Err(self.broken(Rule::Handles, at));
        }
        Ok(())
    }

    /// What is walked over.
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

    /// Claims the tail whose `{offset, length}` stands at `at`, of elements of `size` bytes. Returns the offset of the first and
    /// how many there are.
    ///
    /// # Errors
    /// It is outside, out of order, not aligned, or breaks the rules for lists without bytes.
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

    /// Claims the handle whose number stands at `at`.
    ///
    /// # Errors
    /// It is not the next one in the table.
    pub fn handle(&mut self, at: u32) -> Result<(), Malformed> {
        let index = self.bytes.u32(at);
        if index != self.handles_met || index >= self.handles {
            return Err(self.broken(Rule::Handles, at));
        }
        self.handles_met += 1;
        Ok(())
    }

    /// Checks a word of flags, `bits` of which stand for something.
    ///
    /// # Errors
    /// Another bit is set.
    pub fn flags(&self, at: u32, word: u32, bits: u32) -> Result<(), Malformed> {
        if bits < 32 && word >> bits != 0 {
            return Err(self.broken(Rule::Flags, at));
        }
        Ok(())
    }
}
