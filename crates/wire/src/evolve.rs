//! Types that grew: what one version of a package writes, made what another version reads.
//!
//! Two versions of a type fit where one is the other with more behind:
//!
//! - a record has further fields at its end. What the writer lacks the reader gets as zero: 0, `false`, an empty string or list, `none`, `ok` of a
//!   result, the first case, or the case `unknown` of a type that has one; a handle has no zero, so it cannot be added where one reads it. What the
//!   reader does not know is left out;
//! - an enum or a variant has further cases at its end. A value that the reader does not know is its case `unknown`, which has no payload; without
//!   one, the reader must know all that the writer does;
//! - flags have further flags at their end. Those that the reader does not know are left out.
//!
//! So it goes for each part of a type, and for a function's parameters, which are a record.
//!
//! ```
//! use thalweg_wire::{describe::Type, evolve::Conversion, message};
//!
//! let newer = Type::parse("tuple<record{name:string,rank:u32}>")?;
//! let older = Type::parse("tuple<record{name:string}>")?;
//! let conversion = Conversion::new(newer, older)?;
//! assert!(conversion.is_needed());
//!
//! let wrong = Type::parse("tuple<record{rank:u32,name:string}>")?;
//! let difference = Conversion::new(wrong, Type::parse("tuple<record{name:string}>")?).unwrap_err();
//! assert_eq!(difference.to_string(), "`0.rank` is `0.name` on the other side");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fit;
mod walk;

use std::fmt;

use crate::describe::{Kind, Type};
use crate::{Bytes, Encoder, Handle, Malformed, NoRoom, message};

pub use fit::{Difference, fits};

/// From one version of a type to another.
#[derive(Clone, Debug)]
pub struct Conversion<'a> {
    from: Type<'a>,
    to: Type<'a>,
}

/// A message of the other version.
#[derive(Clone, Debug)]
pub struct Converted<'a> {
    /// The message.
    pub message: Vec<u8>,
    /// Handles of what was left out, for who converts to close.
    pub dropped: Vec<Handle>,
    /// Streams and futures in it whose elements are to be converted, too.
    pub streams: Vec<(Handle, Conversion<'a>)>,
}

/// Why a message was not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconverted {
    /// It is none of the type.
    Message(Malformed),
    /// What it would become is larger than [`MAX_SIZE`](crate::MAX_SIZE).
    Limit,
}

impl fmt::Display for Unconverted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unconverted::Message(malformed) => malformed.fmt(f),
            Unconverted::Limit => {
                f.write_str("in the other version the message would be too large")
            }
        }
    }
}

impl std::error::Error for Unconverted {}

impl From<Malformed> for Unconverted {
    fn from(malformed: Malformed) -> Self {
        Unconverted::Message(malformed)
    }
}

impl<'a> Conversion<'a> {
    /// Of messages that are written as `from` and read as `to`.
    ///
    /// # Errors
    /// They are not versions of one type.
    pub fn new(from: Type<'a>, to: Type<'a>) -> Result<Self, Difference> {
        fits(&to, &from)?;
        Ok(Self { from, to })
    }

    /// The types differ: without, a message can be read as it is.
    pub fn is_needed(&self) -> bool {
        self.from.hash() != self.to.hash()
    }

    /// Checks a message of the one type and writes it as one of the other.
    ///
    /// ```
    /// use thalweg_wire::{describe::Type, evolve::Conversion, message};
    ///
    /// let (older, newer) = (Type::parse("record{a:u8}")?, Type::parse("record{a:u8,b:string}")?);
    /// let old = message::encode(&(7u8,), older.hash(), Vec::new())?;
    /// let converted = Conversion::new(older, newer.clone())?.convert(&old)?;
    /// let (a, b) = message::open(&converted.message, newer.hash())?.view::<(u8, String)>()?;
    /// assert_eq!((a, b), (7, ""));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// It is no message of the type, or would become too large.
    pub fn convert(&self, bytes: &[u8]) -> Result<Converted<'a>, Unconverted> {
        let root = self.from.check_held(bytes)?;
        walk::all(&self.from, &self.to, bytes, root)
    }

    /// Bytes from one record to the next where they are of the type that is written.
    pub fn stride(&self) -> u32 {
        self.to.size().max(1)
    }

    /// Writes `count` records of a stream, which were checked or never left who wrote them, as records of the other version: `first` is the offset of the
    /// first one in `records`, and `to` a [`fixed`](Encoder::fixed) encoder with a slot for all of them, [`stride`](Self::stride) bytes each, that begins
    /// at offset 0. How many bytes of tails they took.
    ///
    /// ```
    /// use thalweg_wire::{Bytes, Encoder, describe::Type, evolve::Conversion};
    ///
    /// // Two records of the older version, one behind the other.
    /// let (mut slots, tails) = ([0; 16], *b"leftright");
    /// for (record, at, text) in [("left", 0u32, 16), ("right", 8, 20)] {
    ///     slots[at as usize..][..8].copy_from_slice(&(text | (record.len() as u64) << 32).to_le_bytes());
    /// }
    /// let types = ["record{name:string}", "record{name:string,rank:u32}"].map(Type::parse);
    /// let [older, newer] = types.map(Result::unwrap);
    /// let conversion = Conversion::new(older, newer)?;
    /// assert_eq!(conversion.stride(), 12);
    ///
    /// let (mut new_slots, mut new_tails) = ([0; 24], [0; 9]);
    /// let to = Encoder::fixed(&mut new_slots, 0, &mut new_tails, 24);
    /// let used = conversion.records(Bytes::batch(&slots, 0, &tails, 16), 0, 2, to)?;
    /// assert_eq!((used, &new_tails), (9, b"leftright"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no room in `to`: how many bytes of tails they take, or that they cannot stand side by side.
    pub fn records(
        &self,
        records: Bytes<'_>,
        first: u32,
        count: u32,
        to: Encoder<'_>,
    ) -> Result<u32, NoRoom> {
        walk::records((&self.from, &self.to), (records, first, count), to)
    }

    /// Of the elements of a parameter that is a stream or a future, by its number; `None`: it is none, or they are the same.
    pub fn of_parameter(&self, parameter: u32) -> Option<Self> {
        let [from, to] = [&self.from, &self.to].map(|ty| match &ty.kind {
            Kind::Record { fields, .. } => fields.get(parameter as usize),
            _ => None,
        });
        let (from, to) = fit::elements(&from?.ty, &to?.ty)?;
        let conversion = Self { from, to };
        conversion.is_needed().then_some(conversion)
    }
}

/// The case that stands for those which a reader does not know.
pub(crate) const UNKNOWN: &str = "unknown";

/// Which case a value has that nobody wrote.
fn first_case(kind: &Kind<'_>) -> usize {
    match kind {
        Kind::Enum(labels) => labels.iter().position(|label| *label == UNKNOWN),
        Kind::Variant { cases, .. } => cases
            .iter()
            .position(|case| case.name == UNKNOWN && case.payload.is_none()),
        _ => None,
    }
    .unwrap_or(0)
}

/// The handles of a message that was checked.
fn table(bytes: &[u8]) -> Vec<Handle> {
    message::open_any(bytes).map_or(Vec::new(), |message| message.handles().collect())
}
