//! What the generators know: one WIT package, with every layout worked out.
//!
//! `parse` fills it from WIT and from the `.thalweg.toml` beside it; the emitters read nothing else, so no
//! language can promise what another does not know.

use std::path::PathBuf;

/// Where a construct stands in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file, as it was named on the command line.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// One package: what one library offers.
#[derive(Clone, Debug)]
pub struct Package {
    /// `thalweg` of `thalweg:search@0.1.0`.
    pub namespace: String,
    /// `search` of it.
    pub name: String,
    /// `0.1.0` of it; a package without a version is refused.
    pub version: String,
    /// Name of the one interface that its world exports.
    pub interface: String,
    /// The documentation of package, world and interface, lines without comment marks.
    pub docs: String,
    /// Named types, each after those it uses. `TypeId` is the place in here.
    pub types: Vec<TypeDef>,
    /// Resources. `ResourceId` is the place in here.
    pub resources: Vec<Resource>,
    /// Functions, constructors and methods; the place is the method's number.
    pub functions: Vec<Function>,
    /// What its service asks of its host, if it asks anything.
    pub host: Option<Host>,
    /// From the `.thalweg.toml`.
    pub bounds: Bounds,
    /// Enums and variants that never get another case, from the `.thalweg.toml`.
    pub closed: Vec<TypeId>,
    /// FNV-1a over all functions' names and hashes, those of the host behind the others: `tw_table.layout`.
    pub layout: u64,
}

impl Package {
    /// FNV-1a over the host's functions: `tw_table.imports`. 0 where the service asks nothing.
    pub fn imports(&self) -> u64 {
        let host = self.host.as_ref();
        host.map_or(0, |host| crate::hash::of_package(&host.functions))
    }

    /// What the host offers, as a package of its own: the same types, and no resource.
    pub fn of_host(&self) -> Option<Self> {
        let host = self.host.as_ref()?;
        Some(Self {
            interface: host.interface.clone(),
            docs: host.docs.clone(),
            resources: Vec::new(),
            functions: host.functions.clone(),
            host: None,
            bounds: Bounds::default(),
            layout: crate::hash::of_package(&host.functions),
            ..self.clone()
        })
    }
}

/// The one interface that a world imports for its functions: what the host has for the service. They take and give values.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name.
    pub interface: String,
    /// Its documentation, lines without comment marks.
    pub docs: String,
    /// The place is the import's number.
    pub functions: Vec<Function>,
}

/// Index into [`Package::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(pub usize);

/// Index into [`Package::resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResourceId(pub usize);

/// A type where it is used, with its canonical layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Which type.
    pub kind: TypeKind,
    /// Bytes in place (8 for strings and lists).
    pub size: u32,
    /// 1, 2, 4 or 8.
    pub align: u32,
}

/// All of WIT's value types.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TypeKind {
    Bool,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F32,
    F64,
    Char,
    String,
    List(Box<Type>),
    /// A list of a fixed length: so many, in place.
    Array(Box<Type>, u32),
    Option(Box<Type>),
    /// Not the top level of a function's result: that is split into `ok` and `error`.
    Result {
        ok: Option<Box<Type>>,
        error: Option<Box<Type>>,
    },
    Tuple(Vec<Type>),
    Named(TypeId),
    Own(ResourceId),
    Borrow(ResourceId),
    Stream(Option<Box<Type>>),
    Future(Option<Box<Type>>),
}

/// A named type.
#[derive(Clone, Debug)]
pub struct TypeDef {
    /// As WIT writes it: `search-error`.
    pub name: String,
    /// Lines without comment marks; may be empty.
    pub docs: String,
    /// What it is.
    pub kind: TypeDefKind,
    /// Bytes in place.
    pub size: u32,
    /// 1, 2, 4 or 8.
    pub align: u32,
    /// FNV-1a 64 of its structure: see [`crate::hash`].
    pub hash: u64,
    /// Where it is defined.
    pub position: Position,
}

/// The kinds of named types.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum TypeDefKind {
    Record(Vec<Field>),
    /// The discriminant, of `tag_size` bytes, is at 0; every payload at `payload_offset`.
    Variant {
        cases: Vec<Case>,
        tag_size: u32,
        payload_offset: u32,
    },
    /// A variant without payloads; `size` of the type is the discriminant's.
    Enum(Vec<Label>),
    /// Bit i of the little-endian word(s); unused bits are 0. `size` of the type is 1, 2, 4 or 4 n.
    Flags(Vec<Label>),
    Alias(Type),
}

/// A field of a record, or a parameter of a function.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Field {
    pub name: String,
    pub docs: String,
    pub ty: Type,
    /// From the start of the record.
    pub offset: u32,
}

/// A case of a variant.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Case {
    pub name: String,
    pub docs: String,
    pub payload: Option<Type>,
}

/// A case of an enum, or a flag.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Label {
    pub name: String,
    pub docs: String,
}

/// A resource: an object that stays on the service's side and is named by a handle.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Resource {
    pub name: String,
    pub docs: String,
    pub position: Position,
    /// The function that ends it, for which who calls may wait: a method whose `self` is an `Own`. From the `.thalweg.toml`.
    pub destructor: Option<usize>,
}

/// What kind of function, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FunctionKind {
    Free,
    Constructor(ResourceId),
    /// Its first parameter is `self`, a `Borrow`.
    Method(ResourceId),
    Static(ResourceId),
}

/// A function, a constructor or a method.
#[derive(Clone, Debug)]
pub struct Function {
    /// The last part of its name: `count`, or `query` for a constructor.
    pub name: String,
    /// `search.count`, `search.[constructor]query`, `search.[method]query.progress`.
    pub full_name: String,
    /// Lines without comment marks, and a line of what a slow reader means to its stream; may be empty.
    pub docs: String,
    /// Whose.
    pub kind: FunctionKind,
    /// `async func`.
    pub is_async: bool,
    /// Laid out as one record.
    pub params: Vec<Field>,
    /// Size and alignment of that record.
    pub params_layout: (u32, u32),
    /// The result; the ok side where the result is a `result`. `None`: nothing.
    pub ok: Option<Type>,
    /// `Some` where the result is a `result`; the inner `None` is `result<T>` with no error payload.
    pub error: Option<Option<Type>>,
    /// Layout hashes of params, ok, error payload and stream element, as in `tw_method`.
    pub hashes: Hashes,
    /// What the `.thalweg.toml` says of it besides.
    pub options: FunctionOptions,
    /// The policy of the streams that it returns, if it returns any: the stream, or those inside of its result.
    pub stream: Option<StreamOptions>,
    /// Where it is declared.
    pub position: Position,
}

/// See `tw_method` in the C header. 0: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Hashes {
    pub params: u64,
    pub ok: u64,
    pub error: u64,
    pub element: u64,
}

/// How much may wait for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Calls.
    pub calls: u32,
    /// Bytes of their arguments; and of the results that wait for a port.
    pub bytes: u64,
    /// `overload = "block"`: who makes a call may wait for room.
    pub waits: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            calls: 4096,
            bytes: 64 << 20,
            waits: false,
        }
    }
}

/// From the `.thalweg.toml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionOptions {
    /// A second run does no harm.
    pub is_idempotent: bool,
    /// It runs on the caller's thread. No handle is among its parameters, and its result is a value.
    pub is_inline: bool,
    /// Nanoseconds after which a call that runs says so to who asked to be told, again and again; 0: never.
    pub notice_ns: u64,
    /// Nanoseconds that a call has at most, and what it gives of streams with it; 0: as long as its caller says.
    pub deadline_ns: u64,
}

/// From the `.thalweg.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// What happens when the reader is slow.
    pub policy: Policy,
    /// Records in flight, 64 to 1,048,576; 8,192 where nothing is said.
    pub capacity: u32,
    /// Nanoseconds that a reader which was given something waits for more before the next record wakes it, at most; 512,000 where nothing is said.
    pub linger_ns: u64,
    /// Bytes that one record may have, 65,536 to 536,870,912; 67,108,864 by default.
    pub largest_record: u32,
}

/// What happens when the reader is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The writer waits.
    Block,
    /// A newer record replaces the one that waits; counted.
    Latest,
    /// The new record is dropped; counted.
    DropNewest,
    /// The oldest records are dropped; counted.
    DropOldest,
    /// The writer is refused.
    Fail,
    /// A newer record replaces the one that waits and has the same in this field of the element, a record; counted.
    Conflate {
        /// The place in its fields: a scalar, an enum, a string or a `list<u8>`.
        key: usize,
    },
}

/// The record that a function's stream carries, if it is one.
pub fn streamed<'a>(types: &'a [TypeDef], function: &'a Function) -> Option<&'a [Field]> {
    let TypeKind::Stream(Some(element)) = &function.ok.as_ref()?.kind else {
        return None;
    };
    let TypeKind::Named(id) = seen_through(types, element).kind else {
        return None;
    };
    match &types[id.0].kind {
        TypeDefKind::Record(fields) => Some(fields),
        _ => None,
    }
}

/// What an alias stands for.
pub fn seen_through<'a>(types: &'a [TypeDef], ty: &'a Type) -> &'a Type {
    match &ty.kind {
        TypeKind::Named(id) => match &types[id.0].kind {
            TypeDefKind::Alias(target) => seen_through(types, target),
            _ => ty,
        },
        _ => ty,
    }
}

/// A method that takes its resource: an async destructor.
pub fn is_destructor(function: &Function) -> bool {
    let own = function.params.first().map(|field| &field.ty.kind);
    matches!(function.kind, FunctionKind::Method(_)) && matches!(own, Some(TypeKind::Own(_)))
}

/// A stream or a future, with nothing around it. As a parameter the caller writes it and the service reads it.
pub fn is_sent_up(ty: &Type) -> bool {
    matches!(ty.kind, TypeKind::Stream(_) | TypeKind::Future(_))
}

/// A value of the type can have handles in it: resources, streams and futures.
pub fn holds(types: &[TypeDef], ty: &Type) -> bool {
    has(types, ty, |kind| {
        use TypeKind::{Borrow, Future, Own, Stream};
        matches!(kind, Own(_) | Borrow(_) | Stream(_) | Future(_))
    })
}

/// The type is one of a kind, or has one in it; what a stream carries is not in it.
pub fn has(types: &[TypeDef], ty: &Type, is: fn(&TypeKind) -> bool) -> bool {
    let inner = |ty: &Type| has(types, ty, is);
    is(&ty.kind)
        || match &ty.kind {
            TypeKind::List(item) | TypeKind::Array(item, _) | TypeKind::Option(item) => inner(item),
            TypeKind::Result { ok, error } => ok.iter().chain(error).any(|ty| inner(ty)),
            TypeKind::Tuple(items) => items.iter().any(inner),
            TypeKind::Named(id) => match &types[id.0].kind {
                TypeDefKind::Record(fields) => fields.iter().any(|field| inner(&field.ty)),
                TypeDefKind::Variant { cases, .. } => cases
                    .iter()
                    .filter_map(|case| case.payload.as_ref())
                    .any(inner),
                TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => false,
                TypeDefKind::Alias(ty) => inner(ty),
            },
            _ => false,
        }
}
