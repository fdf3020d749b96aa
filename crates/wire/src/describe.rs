//! Types as text, for who knows them only when it runs.
//!
//! The text is a type's [`Shape`]: `record{path:string,line:u64}`, as `docs/internals/boundary.md` has it. It says all that
//! the layout needs, and its hash is the type's, so what reads by a description and what reads by a generated type cannot differ unseen.
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

use crate::{Bytes, Malformed, Rule, Shape, message};

/// A type with its layout. Names are borrowed from the text.
#[derive(Clone, Debug)]
pub struct Type<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) size: u32,
    pub(crate) align: u32,
    /// Some part of it is a handle.
    pub(crate) has_handle: bool,
    text: &'a str,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    /// Nothing: `_`.
    Unit,
    Bool,
    Char,
    Text,
    Handle,
    Number(Number),
    List(Box<Type<'a>>),
    /// A list of a fixed length, in place.
    Array {
        item: Box<Type<'a>>,
        count: u32,
    },
    /// The value stands at `payload`.
    Option {
        value: Box<Type<'a>>,
        payload: u32,
    },
    /// A result is one of `ok` and `error`, both with a payload, if only `_`.
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
    /// Of a stream or a future: which of them it is, and the text of its elements.
    pub(crate) fn streamed(&self) -> Option<(&'a str, &'a str)> {
        let (word, element) = self.text.split_once('<')?;
        let is_one = matches!(word, "stream" | "future");
        is_one.then_some((word, element.strip_suffix('>')?))
    }
}

impl Type<'_> {
    /// Bytes in place.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// 1, 2, 4 or 8.
    pub fn align(&self) -> u32 {
        self.align
    }

    /// The layout's hash: a message of this type carries its low half.
    pub fn hash(&self) -> u64 {
        Shape::hash_of(self.text)
    }

    /// What describes it.
    pub(crate) fn text(&self) -> &str {
        self.text
    }

    /// A `result`, and no variant that looks like one.
    pub(crate) fn is_result(&self) -> bool {
        self.text.starts_with("result<")
    }

    /// In CBOR the value may itself be `null`.
    pub(crate) fn nullable(&self) -> bool {
        match &self.kind {
            Kind::Unit => true,
            Kind::Option { value, .. } => !value.nullable(),
            _ => false,
        }
    }

    /// Checks a whole message of this type and says where its root is.
    ///
    /// # Errors
    /// The first rule that is broken; [`Rule::Handles`] where the message has handles: they are not looked into here.
    pub fn check(&self, bytes: &[u8]) -> Result<u32, Malformed> {
        let handles = message::open(bytes, self.hash())?.handles().len() as u32;
        if handles > 0 || self.has_handle {
            let at = message::root(handles);
            let rule = Rule::Handles;
            return Err(Malformed { rule, at });
        }
        self.check_held(bytes)
    }

    /// The same for a message that may have handles.
    pub(crate) fn check_held(&self, bytes: &[u8]) -> Result<u32, Malformed> {
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
