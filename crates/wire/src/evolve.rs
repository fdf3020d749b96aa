//! Schema evolution: converts a message of one version of a type to another version.
//!
//! Two versions of a type are compatible if one only appends to the other:
//!
//! - A record has more fields at its end. A field that the writer lacks reads as zero: 0, `false`,
//!   an empty string or list, `none`, `ok` of a result, the first case, or the case `unknown` of a
//!   type that has it. A handle has no zero value, so a reader cannot add one. A field that the
//!   reader lacks is left out.
//! - An enum or a variant has more cases at its end. A case that the reader lacks becomes its case
//!   `unknown`, which has no payload. Without such a case, the reader must have all cases of the
//!   writer.
//! - Flags have more flags at their end. Flags that the reader lacks are left out.
//!
//! The same holds for each part of a type, and for a function's parameters, which are a record.
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

pub use fit::{Addition, Comparison, Difference, compare, fits};

/// A conversion from one version of a type to another.
#[derive(Clone, Debug)]
pub struct Conversion<'a> {
    from: Type<'a>,
    to: Type<'a>,
}

/// A converted message.
#[derive(Clone, Debug)]
pub struct Converted<'a> {
    /// The message.
    pub message: Vec<u8>,
    /// Handles in the parts that were left out. The caller must close them.
    pub dropped: Vec<Handle>,
    /// Streams and futures in the message whose elements need a conversion as well.
    pub streams: Vec<(Handle, Conversion<'a>)>,
}

/// Why a message was not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconverted {
    /// The message is malformed for its type.
    Message(Malformed),
    /// The converted message would be larger than [`MAX_SIZE`](crate::MAX_SIZE).
    Limit,
    /// There is no memory for this many bytes.
    Memory(usize),
}

impl fmt::Display for Unconverted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unconverted::Message(malformed) => malformed.fmt(f),
            Unconverted::Limit => {
                f.write_str("in the other version the message would be too large")
            }
            Unconverted::Memory(bytes) => write!(f, "there is no memory for {bytes} bytes"),
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
    /// A conversion of messages that are written as `from` and read as `to`.
    ///
    /// # Errors
    /// The types are not versions of one type.
    pub fn new(from: Type<'a>, to: Type<'a>) -> Result<Self, Difference> {
        fits(&to, &from)?;
        Ok(Self { from, to })
    }

    /// Whether the types differ. If not, a message can be read without a conversion.
    pub fn is_needed(&self) -> bool {
        self.from.hash() != self.to.hash()
    }

    /// Checks a message of the type `from` and writes it as the type `to`.
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
    /// The message is malformed, the converted message would be too large, or there is no memory
    /// for it.
    pub fn convert(&self, bytes: &[u8]) -> Result<Converted<'a>, Unconverted> {
        let root = self.from.check_with_handles(bytes)?;
        walk::all(&self.from, &self.to, bytes, root)
    }

    /// Bytes from one converted record to the next.
    pub fn stride(&self) -> u32 {
        self.to.size().max(1)
    }

    /// Writes `count` records of a stream as records of the other version. `first` is the offset of
    /// the first record in `records`; the records must be checked or come from this process. `to`
    /// is a [`fixed`](Encoder::fixed) encoder that begins at offset 0 and has a slot of
    /// [`stride`](Self::stride) bytes for each record. Returns the number of bytes that the tails
    /// take.
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
    /// `to` has no room. The error contains the number of bytes that the tails take, or tells that
    /// the records cannot be placed in one batch.
    pub fn records(
        &self,
        records: Bytes<'_>,
        first: u32,
        count: u32,
        to: Encoder<'_>,
    ) -> Result<u32, NoRoom> {
        walk::records((&self.from, &self.to), (records, first, count), to)
    }

    /// The conversion of the elements of parameter number `parameter`, a stream or a future.
    /// Returns `None` if the parameter is neither, or if the elements need no conversion.
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

/// Writes the checked value at `at` unchanged, with its fixed part at `to_at`.
pub(crate) fn copy_value(
    ty: &Type<'_>,
    from: Bytes<'_>,
    at: u32,
    to: &mut Encoder<'_>,
    to_at: u32,
) {
    walk::copy(ty, from, at, to, to_at);
}

/// The case that replaces cases which the reader lacks.
pub(crate) const UNKNOWN: &str = "unknown";

/// The case of a value that the writer did not write.
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

/// The handles of a checked message.
fn table(bytes: &[u8]) -> Vec<Handle> {
    message::open_any(bytes).map_or(Vec::new(), |message| message.handles().collect())
}
