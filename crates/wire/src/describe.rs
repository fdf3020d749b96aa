//! Types as text, for code that learns a type at run time.
//!
//! The text is a type's [`Shape`](crate::Shape), for example `record{path:string,line:u64}`;
//! `docs/internals/boundary.md` defines it. It determines the layout, and its hash is the type's
//! hash, so a difference between a description and a generated type is always detected.
//!
//! ```
//! use thalweg_wire::{Decode, describe::Type};
//!
//! let ty = Type::parse("tuple<u8,list<string>>")?;
//! assert_eq!((ty.size(), ty.align()), (12, 4));
//! assert_eq!(ty.hash(), <(u8, Vec<String>)>::HASH);
//! # Ok::<(), thalweg_wire::describe::Unreadable>(())
//! ```

mod check;
mod parse;

pub(crate) use check::word;
pub use parse::Unreadable;

use crate::{Bytes, Malformed, Rule, message};

/// A type with its layout. Names are borrowed from the text.
#[derive(Clone, Debug)]
pub struct Type<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) size: u32,
    pub(crate) align: u32,
    /// Some part of the type is a handle.
    pub(crate) has_handle: bool,
    text: &'a str,
    hash: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    /// No value: `_`.
    Unit,
    Bool,
    Char,
    Text,
    Handle,
    Number(Number),
    List(Box<Type<'a>>),
    /// A list of a fixed length, stored in place.
    Array {
        item: Box<Type<'a>>,
        count: u32,
    },
    /// The value is at offset `payload`.
    Option {
        value: Box<Type<'a>>,
        payload: u32,
    },
    /// A result is a variant of `ok` and `error`. Both have a payload, which may be `_`.
    Variant {
        cases: Vec<Case<'a>>,
        tag: u32,
        payload: u32,
    },
    Tuple(Vec<Field<'a>>),
    Record {
        fields: Vec<Field<'a>>,
        /// The fields in the order of their keys in CBOR.
        sorted: Vec<usize>,
    },
    Enum(Vec<&'a str>),
    Flags(Vec<&'a str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Unsigned,
    Signed,
    Float,
}

#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub name: &'a str,
    pub offset: u32,
    pub ty: Type<'a>,
}

#[derive(Clone, Debug)]
pub(crate) struct Case<'a> {
    pub name: &'a str,
    pub payload: Option<Type<'a>>,
}

impl<'a> Type<'a> {
    /// A stream or a future, and the text of its elements.
    pub(crate) fn streamed(&self) -> Option<(&'a str, &'a str)> {
        let (word, element) = self.text.split_once('<')?;
        let is_one = matches!(word, "stream" | "future");
        is_one.then_some((word, element.strip_suffix('>')?))
    }
}

impl Type<'_> {
    /// Size in bytes of the fixed part.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Alignment in bytes: 1, 2, 4 or 8.
    pub fn align(&self) -> u32 {
        self.align
    }

    /// The hash of the layout. The header of a message contains its low half.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The text that describes the type.
    pub(crate) fn text(&self) -> &str {
        self.text
    }

    /// Whether the type is a `result`, and not a variant that looks like one.
    pub(crate) fn is_result(&self) -> bool {
        self.text.starts_with("result<")
    }

    /// Whether the value itself can be `null` in CBOR.
    pub(crate) fn nullable(&self) -> bool {
        match &self.kind {
            Kind::Unit => true,
            Kind::Option { value, .. } => !value.nullable(),
            _ => false,
        }
    }

    /// Checks a whole message of this type and returns the offset of its root.
    ///
    /// # Errors
    /// The first rule that the message breaks; [`Rule::Handles`] if the message has handles, which
    /// this function does not support.
    pub fn check(&self, bytes: &[u8]) -> Result<u32, Malformed> {
        let handles = message::open(bytes, self.hash())?.handles().len() as u32;
        if handles > 0 || self.has_handle {
            let at = message::root(handles);
            let rule = Rule::Handles;
            return Err(Malformed { rule, at });
        }
        self.check_with_handles(bytes)
    }

    /// The same for a message that can have handles. Their objects are not checked.
    ///
    /// ```
    /// use thalweg_wire::{Handle, Rule, describe::Type, message};
    ///
    /// let ty = Type::parse("tuple<own<timer>>")?;
    /// let message = message::encode(&(Handle(7),), ty.hash(), Vec::new())?;
    /// assert_eq!(ty.check(&message).unwrap_err().rule, Rule::Handles);
    /// assert!(ty.check_with_handles(&message).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first rule that the message breaks.
    pub fn check_with_handles(&self, bytes: &[u8]) -> Result<u32, Malformed> {
        let message = message::open(bytes, self.hash())?;
        let handles = message.handles().len() as u32;
        let at = message::root(handles);
        let broken = |rule| Malformed { rule, at };
        if u64::from(at) + u64::from(self.size) > bytes.len() as u64 {
            return Err(broken(Rule::Root));
        }
        let mut checker = crate::Checker::new(Bytes::message(bytes), at + self.size, handles);
        self.check_at(&mut checker, at)?;
        checker.all_handles_met(at)?;
        Ok(at)
    }
}
