//! A record that its writer fills in place.
//!
//! 1. The next slot of the open segment is reserved as long as the [`ReservedRecord`] exists. It
//!    borrows the writer exclusively, so that nothing else is written into the slot.
//! 2. All bytes of a reserved slot are 0. Under a lease of the callback, each record is in the same
//!    slot, and only the written part is cleared for the next one. `Direct::is_slot_clear` is false
//!    while the slot is reserved, also after a `mem::forget`.

use std::ops::Range;

use thalweg_wire::{Decode, Encode, Field, NoRoom};

use crate::code::{Code, Failure};
use crate::stream::segment::NextSlot;
use crate::stream::sending::Sent;
use crate::stream::{StreamWriter, Untyped};

/// A slot of the stream in which you write a record field by field:
/// [`StreamWriter::reserve`]. Fields that you do not set have their default: 0, `false`, an empty
/// string or list, none, or the first case.
///
/// [`commit`](Self::commit) makes the record visible. Dropping this without it writes nothing.
///
/// A callback in Rust that is [called directly](crate::StreamReader::subscribe) gets the next record
/// in the same slot.
#[derive(Debug)]
pub struct ReservedRecord<'w, T: Decode, E = Untyped> {
    writer: &'w mut StreamWriter<T, E>,
    slot: NextSlot,
    written: WrittenParts,
    /// The writer held the lease of the callback when the slot was reserved.
    is_direct: bool,
    /// The last field that did not fit.
    failed: Option<NoRoom>,
}

impl<T: Decode, E> StreamWriter<T, E> {
    /// Reserves the slot of the next record, to write its fields where the reader reads them. There is
    /// no value that is constructed elsewhere and copied. `tails` is the number of bytes that the
    /// strings and lists of the record need, including their alignment; 0 for a record of numbers.
    ///
    /// Returns `None` if the stream is full and its policy drops the new record. The policy `block`
    /// waits for the reader, as [`send`](Self::send) does.
    ///
    /// ```
    /// use thalweg_port::{Call, Failure, StreamReader, StreamWriter};
    /// use thalweg_wire::Record;
    ///
    /// thalweg_wire::record! {
    ///     #[derive(Clone, Copy, Debug, PartialEq)]
    ///     pub struct Sample {
    ///         pub number: u64 => "number" @ 0,
    ///         pub level: u64 => "level" @ 8;
    ///     }
    ///     size 16, align 8, hash 0x030e_bd7e_8507_1775
    /// }
    ///
    /// fn measure(mut writer: StreamWriter<Sample>, to: u64) -> Result<(), Failure> {
    ///     for number in 0..to {
    ///         if let Some(mut sample) = writer.reserve(0)? {
    ///             sample.set(Sample::FIELDS.number, &number);
    ///             sample.set(Sample::FIELDS.level, &(number % 7));
    ///             sample.commit()?;
    ///         }
    ///     }
    ///     writer.finish()
    /// }
    ///
    /// fn samples(call: &Call, to: u64) -> StreamReader<Sample> {
    ///     let (writer, reader) = call.stream();
    ///     call.spawn(move |_| drop(measure(writer, to)));
    ///     reader
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`send`](Self::send). `argument`: the record with these tails is larger than the
    /// policy's `max_record_size`.
    #[inline(always)]
    pub fn reserve(&mut self, tails: u32) -> Result<Option<ReservedRecord<'_, T, E>>, Failure> {
        let state = self.state.get_mut();
        let Some(slot) = self.core.reserve(state, tails, u64::MAX)? else {
            return Ok(None);
        };
        Ok(Some(ReservedRecord {
            is_direct: state.direct.is_some(),
            writer: self,
            slot,
            written: WrittenParts::default(),
            failed: None,
        }))
    }
}

impl<T: Decode, E> ReservedRecord<'_, T, E> {
    /// Writes a field, owned or borrowed. A field of a nested record is
    /// `Outer::FIELDS.inner.then(Inner::FIELDS.field)`. If you set a string or a list again, the
    /// space of the previous one is not used again.
    ///
    /// A string or list for which there is no space makes [`commit`](Self::commit) fail.
    #[inline(always)]
    pub fn set<V: Encode + ?Sized>(&mut self, field: Field<T, V::As>, value: &V) {
        let from = field.offset();
        self.written.add((from, from + <V::As as Decode>::SIZE));
        // SAFETY: rule 1: the slot is free and remains it. The field is inside a record of this type,
        // and rule 13 of the stream: the slot holds one.
        if let Err(why) = unsafe { self.slot.fill(from, value) } {
            self.failed = Some(why);
        }
    }

    /// Makes the record visible to the reader, or passes it to the callback.
    ///
    /// # Errors
    /// `closed`: the reader is gone. The stream's outcome, if it has ended in the meantime. `argument`:
    /// a string or list did not fit; the stream continues. Nothing was written in these cases.
    #[inline(always)]
    pub fn commit(mut self) -> Result<Sent, Failure> {
        if let Some(why) = self.failed.take() {
            return Err(no_space(why));
        }
        self.writer.core.check_open()?;
        let (core, state) = (&self.writer.core, self.writer.state.get_mut());
        if self.is_direct {
            core.send_direct(state, self.slot.end);
            self.clear();
            return Ok(Sent::Written);
        }
        core.add_record(state, self.slot.end, 1, u64::MAX)
    }

    /// Rule 2. If the writer had a lease and still has one, it is the same: a writer takes a lease
    /// only after a record in the queue.
    #[inline(always)]
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_direct)
            && let Some(direct) = &mut self.writer.state.get_mut().direct
        {
            for part in self.written.parts() {
                // SAFETY: a segment that is written under a lease has a free slot, because its
                // records are in the same one. The range is that of fields, as in `set`.
                unsafe { self.slot.clear(part) };
            }
            direct.is_slot_clear = true;
        }
    }
}

impl<T: Decode, E> Drop for ReservedRecord<'_, T, E> {
    #[inline(always)]
    fn drop(&mut self) {
        self.clear();
    }
}

/// The two parts of a slot that may contain other bytes than 0: the fields from the first one on that
/// are next to each other, and all others with the bytes between them. If the offsets of the fields
/// are constants, these are constants too, and clearing a part takes a few stores. An array of more
/// parts is not: the compiler kept it in memory.
#[derive(Debug, Default)]
struct WrittenParts {
    first: (u32, u32),
    others: (u32, u32),
}

impl WrittenParts {
    #[inline(always)]
    fn add(&mut self, (start, end): (u32, u32)) {
        let is_empty = |(start, end): (u32, u32)| start == end;
        if is_empty(self.first) {
            self.first = (start, end);
        } else if self.first.0 <= start && start <= self.first.1 {
            self.first.1 = self.first.1.max(end);
        } else if is_empty(self.others) {
            self.others = (start, end);
        } else {
            self.others = (self.others.0.min(start), self.others.1.max(end));
        }
    }

    #[inline(always)]
    fn parts(&self) -> [Range<u32>; 2] {
        [self.first, self.others].map(|(start, end)| start..end)
    }
}

#[cold]
fn no_space(why: NoRoom) -> Failure {
    Code::Argument.because(match why.needed {
        Some(needed) => {
            format!("a field has {needed} bytes of strings and lists, and fewer were reserved")
        }
        None => why.to_string(),
    })
}
