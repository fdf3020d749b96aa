//! Types with their layout and direction.

use crate::model::{Label, ResourceId, Scalar, TypeId};

/// An index into [`Plan::types`](super::Plan::types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeIndex(pub usize);

/// A type.
#[derive(Clone, Debug)]
pub struct Type<'a> {
    /// The structure.
    pub kind: Kind<'a>,
    /// Size in bytes of the fixed part.
    pub size: u32,
    /// Alignment: 1, 2, 4 or 8.
    pub align: u32,
    /// The number of its definition, if the type has a name in WIT.
    pub id: Option<TypeId>,
    /// The documentation in WIT; empty if there is none.
    pub docs: &'a str,
    /// The type in WIT, with aliases resolved: `option<list<u8>>`.
    pub wit: String,
    /// Part of a name, in kebab-case: `search-error`, `option-list-u8`.
    pub stem: String,
    /// The directions in which values of the type go.
    pub usage: Usage,
    /// A value has no tails and no handles.
    pub is_plain: bool,
    /// A value can have handles.
    pub has_handles: bool,
    /// Every bit pattern is a value, so that there is nothing to check.
    pub is_trivial: bool,
}

/// The structure of a type.
#[derive(Clone, Debug)]
pub enum Kind<'a> {
    /// A number, a `bool` or a `char`.
    Scalar(Scalar),
    /// `string`.
    Text,
    /// `list<u8>`.
    Bytes,
    /// An index into the message's table of handles.
    Handle(Handle),
    /// A list of any other type. Elements follow each other at a distance of their size.
    List(TypeIndex),
    /// A list of a fixed length, stored in place.
    Array(TypeIndex, u32),
    /// An option. Its discriminant is a byte at offset 0: 0 or 1.
    Option {
        /// The type of the value.
        value: TypeIndex,
        /// The offset of the value.
        payload_offset: u32,
    },
    /// A variant. Without a name, it is a `result` with the cases `ok` and `error`.
    Variant {
        /// The cases, in the order of their discriminants.
        cases: Vec<Case<'a>>,
        /// Bytes of the discriminant at offset 0.
        tag_size: u32,
        /// The offset of every payload.
        payload_offset: u32,
    },
    /// A record. Without a name, it is a tuple, and its members have no names.
    Record(Vec<Member<'a>>),
    /// An enum: a number of the type's size.
    Enum(&'a [Label]),
    /// Flags: flag i is bit i. Unused bits are 0.
    Flags(&'a [Label]),
}

impl Kind<'_> {
    /// The types inside the value. The elements of a stream are not inside.
    pub fn parts(&self) -> Vec<TypeIndex> {
        match self {
            Kind::Record(members) => members.iter().map(|member| member.ty).collect(),
            Kind::Variant { cases, .. } => cases.iter().filter_map(|case| case.payload).collect(),
            Kind::List(part) | Kind::Array(part, _) | Kind::Option { value: part, .. } => {
                vec![*part]
            }
            Kind::Scalar(_)
            | Kind::Text
            | Kind::Bytes
            | Kind::Handle(_)
            | Kind::Enum(_)
            | Kind::Flags(_) => Vec::new(),
        }
    }

    /// The names in WIT of the fields, cases or flags, and their documentation.
    pub fn labels(&self) -> Vec<(&str, &str)> {
        match self {
            Kind::Record(members) => members.iter().map(|one| (one.name, one.docs)).collect(),
            Kind::Variant { cases, .. } => cases.iter().map(|one| (one.name, one.docs)).collect(),
            Kind::Enum(labels) | Kind::Flags(labels) => {
                let labels = labels.iter();
                labels.map(|one| (&*one.name, &*one.docs)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What a handle inside a value refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handle {
    /// A resource, which belongs to the owner of the value.
    Own(ResourceId),
    /// A borrowed resource.
    Borrow(ResourceId),
    /// A stream or future: an index into [`Plan::streams`](super::Plan::streams).
    Stream(usize),
}

/// A field of a record, or a part of a tuple.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The name in WIT; empty in a tuple.
    pub name: &'a str,
    /// The documentation in WIT.
    pub docs: &'a str,
    /// The type.
    pub ty: TypeIndex,
    /// The offset.
    pub offset: u32,
}

/// A case of a variant.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The name in WIT.
    pub name: &'a str,
    /// The documentation in WIT.
    pub docs: &'a str,
    /// The type of its payload.
    pub payload: Option<TypeIndex>,
}

/// Where a type is used. What holds for a type also holds for the types inside it, except
/// `is_raised` and `is_streamed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The caller writes it: in arguments, in streams that are parameters, and in the results of
    /// host imports.
    pub is_input: bool,
    /// The caller reads it: in results, errors and streams, and in the arguments of host imports.
    /// Also set for a named type that is used nowhere.
    pub is_output: bool,
    /// The caller reads it from a message, which it must check first. It does not check streams,
    /// because the core does.
    pub is_checked: bool,
    /// It is an error payload itself.
    pub is_raised: bool,
    /// It is the element of a stream that a function returns.
    pub is_streamed: bool,
}
