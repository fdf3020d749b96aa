//! The model of one WIT package, with every layout computed.
//!
//! `parse` builds the model from the WIT and its `.thalweg.toml`. The emitters read nothing else,
//! so every language gets the same facts.

use std::path::PathBuf;

/// The position of a construct in its source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The path as given on the command line.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: u32,
    /// The column in characters, counted from 1.
    pub column: u32,
}

/// One package: the interface of one library.
#[derive(Clone, Debug)]
pub struct Package {
    /// `thalweg` in `thalweg:search@0.1.0`.
    pub namespace: String,
    /// `search` in `thalweg:search@0.1.0`.
    pub name: String,
    /// `0.1.0` in `thalweg:search@0.1.0`. A package without a version is an error.
    pub version: String,
    /// The name of the interface that the world exports.
    pub interface: String,
    /// The documentation of the package, the world and the interface, without comment marks.
    pub docs: String,
    /// The named types. Each type follows the types that it uses. A [`TypeId`] is an index into
    /// this list.
    pub types: Vec<TypeDef>,
    /// The resources. A [`ResourceId`] is an index into this list.
    pub resources: Vec<Resource>,
    /// The functions, constructors and methods. The index is the method's number.
    pub functions: Vec<Function>,
    /// The host imports, if the world imports an interface with functions.
    pub host: Option<Host>,
    /// Limits of the call queue, from the `.thalweg.toml`.
    pub limits: Limits,
    /// Enums and variants that never get another case, from the `.thalweg.toml`.
    pub closed: Vec<TypeId>,
    /// FNV-1a over the names and hashes of all functions, followed by the host imports:
    /// `tw_table.layout`.
    pub layout: u64,
}

impl Package {
    /// FNV-1a over the host imports: `tw_table.imports`. 0 without host imports.
    pub fn host_layout(&self) -> u64 {
        self.host.as_ref().map_or(0, |host| host.layout)
    }

    /// The package as a guest sees it: the functions are calls that it answers, as a host answers host
    /// imports. [`Plan::imports`](crate::plan::Plan::imports) has them.
    pub fn for_guest(&self) -> Self {
        Self {
            host: Some(Host {
                interface: self.interface.clone(),
                docs: self.docs.clone(),
                functions: self.functions.clone(),
                layout: self.layout,
            }),
            functions: self
                .host
                .as_ref()
                .map_or_else(Vec::new, |host| host.functions.clone()),
            ..self.clone()
        }
    }

    /// The host imports as a package of their own, with the same types and without resources.
    pub fn host_package(&self) -> Option<Self> {
        let host = self.host.as_ref()?;
        Some(Self {
            interface: host.interface.clone(),
            docs: host.docs.clone(),
            resources: Vec::new(),
            functions: host.functions.clone(),
            host: None,
            limits: Limits::default(),
            layout: host.layout,
            ..self.clone()
        })
    }
}

/// The interface that the service calls on its host. Its functions take and return only values.
#[derive(Clone, Debug)]
pub struct Host {
    /// The name of the interface.
    pub interface: String,
    /// The documentation, without comment marks.
    pub docs: String,
    /// The functions. The index is the import's number.
    pub functions: Vec<Function>,
    /// FNV-1a over the names and hashes of the functions.
    pub layout: u64,
}

/// Index into [`Package::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(pub usize);

/// Index into [`Package::resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResourceId(pub usize);

/// A use of a type, with its canonical layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type.
    pub kind: TypeKind,
    /// Size in bytes (8 for strings and lists).
    pub size: u32,
    /// Alignment: 1, 2, 4 or 8.
    pub align: u32,
}

/// The value types of WIT.
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
    /// A list of fixed length, stored in place.
    Array(Box<Type>, u32),
    Option(Box<Type>),
    /// A `result` that is not the whole result of a function: that one is split into `ok` and
    /// `error`.
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

/// A type that most languages have themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Scalar {
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
}

impl Scalar {
    /// The type in WIT.
    pub fn wit(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::S8 => "s8",
            Scalar::S16 => "s16",
            Scalar::S32 => "s32",
            Scalar::S64 => "s64",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::Char => "char",
        }
    }

    /// Every bit pattern is a value.
    pub fn is_number(self) -> bool {
        !matches!(self, Scalar::Bool | Scalar::Char)
    }

    /// The unsigned number of `size` bytes: 1, 2, or else 4.
    pub fn unsigned(size: u32) -> Self {
        match size {
            1 => Scalar::U8,
            2 => Scalar::U16,
            _ => Scalar::U32,
        }
    }
}

impl TypeKind {
    /// The scalar, if it is one.
    pub fn scalar(&self) -> Option<Scalar> {
        Some(match self {
            TypeKind::Bool => Scalar::Bool,
            TypeKind::U8 => Scalar::U8,
            TypeKind::U16 => Scalar::U16,
            TypeKind::U32 => Scalar::U32,
            TypeKind::U64 => Scalar::U64,
            TypeKind::S8 => Scalar::S8,
            TypeKind::S16 => Scalar::S16,
            TypeKind::S32 => Scalar::S32,
            TypeKind::S64 => Scalar::S64,
            TypeKind::F32 => Scalar::F32,
            TypeKind::F64 => Scalar::F64,
            TypeKind::Char => Scalar::Char,
            _ => return None,
        })
    }
}

/// A named type.
#[derive(Clone, Debug)]
pub struct TypeDef {
    /// The name as in WIT: `search-error`.
    pub name: String,
    /// The documentation, without comment marks; may be empty.
    pub docs: String,
    /// The definition.
    pub kind: TypeDefKind,
    /// Size in bytes.
    pub size: u32,
    /// Alignment: 1, 2, 4 or 8.
    pub align: u32,
    /// FNV-1a 64 of the type's structure: see [`crate::hash`].
    pub hash: u64,
    /// The position of the definition.
    pub position: Position,
}

/// The kinds of named types.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum TypeDefKind {
    Record(Vec<Field>),
    /// The discriminant has `tag_size` bytes at offset 0. Every payload is at `payload_offset`.
    Variant {
        cases: Vec<Case>,
        tag_size: u32,
        payload_offset: u32,
    },
    /// A variant without payloads. The size of the type is the size of the discriminant.
    Enum(Vec<Label>),
    /// Flag i is bit i of the little-endian words; unused bits are 0. The size of the type is 1, 2,
    /// 4 or 4 n.
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
    /// Offset from the start of the record.
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

/// A resource: an object that stays in the service and is used by handle.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Resource {
    pub name: String,
    pub docs: String,
    pub position: Position,
    /// The async destructor, a method whose `self` is an `Own`, if the `.thalweg.toml` asks for
    /// one.
    pub destructor: Option<usize>,
}

/// The kind of a function, with its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FunctionKind {
    Free,
    Constructor(ResourceId),
    /// The first parameter is `self`, a `Borrow`.
    Method(ResourceId),
    Static(ResourceId),
}

/// A function, a constructor or a method.
#[derive(Clone, Debug)]
pub struct Function {
    /// The last part of the name: `count`, or `query` for a constructor.
    pub name: String,
    /// `search.count`, `search.[constructor]query`, `search.[method]query.progress`.
    pub full_name: String,
    /// The documentation without comment marks, with a paragraph about the overflow policy and the
    /// timeout; may be empty.
    pub docs: String,
    /// The kind, with the resource.
    pub kind: FunctionKind,
    /// `async func`.
    pub is_async: bool,
    /// The parameters, laid out as one record.
    pub params: Vec<Field>,
    /// Size and alignment of that record.
    pub params_layout: (u32, u32),
    /// The result, or the ok side of a `result`. `None`: no value.
    pub ok: Option<Type>,
    /// `Some` if the function returns a `result`. The inner `None` is a `result<T>` without an
    /// error payload.
    pub error: Option<Option<Type>>,
    /// Layout hashes of the parameters, the result, the error payload and the stream element, as in
    /// `tw_method`.
    pub hashes: Hashes,
    /// The options from the `.thalweg.toml`.
    pub options: FunctionOptions,
    /// The options of the streams in the result, if there are any.
    pub stream: Option<StreamOptions>,
    /// The position of the declaration.
    pub position: Position,
}

/// The hashes of `tw_method` in the C header. 0: the function has no such part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Hashes {
    pub params: u64,
    pub ok: u64,
    pub error: u64,
    pub element: u64,
}

/// Limits of the calls that are queued for one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of queued calls.
    pub max_queued_calls: u32,
    /// The maximum number of bytes of their arguments, and of the unreaped results of a port.
    pub max_queued_bytes: u64,
    /// `overflow = "block"`: a blocking call waits for capacity.
    pub block_when_full: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_queued_calls: 4096,
            max_queued_bytes: 64 << 20,
            block_when_full: false,
        }
    }
}

/// The options of a function in the `.thalweg.toml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionOptions {
    /// A second execution is harmless.
    pub is_idempotent: bool,
    /// The function runs on the caller's thread. No parameter is a handle, and the result is a
    /// value.
    pub is_inline: bool,
    /// The function is short and never waits, so a caller's thread may run it while the service is
    /// idle.
    pub is_brief: bool,
    /// A caller may use CBOR for the function. It takes and returns only values.
    pub is_cbor: bool,
    /// The interval of progress notices in nanoseconds; 0: none.
    pub notice_interval_ns: u64,
    /// The maximum duration of a call and of its streams in nanoseconds; 0: only the caller's
    /// deadline applies.
    pub timeout_ns: u64,
}

/// The options of a stream in the `.thalweg.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// What happens if the stream is full.
    pub overflow: OverflowPolicy,
    /// The maximum number of unread records, 64 to 1,048,576; default 8,192.
    pub capacity: u32,
    /// How long a reader waits for more records after a batch, before the next record wakes it, in
    /// nanoseconds; default 0: only the reader of a fast stream waits.
    pub linger_ns: u64,
    /// The maximum size of one record in bytes, 65,536 to 536,870,912; default 67,108,864.
    pub max_record_size: u32,
}

impl StreamOptions {
    /// The options of a stream that the policy file does not mention.
    pub const DEFAULT: Self = Self {
        overflow: OverflowPolicy::Block,
        capacity: 8_192,
        linger_ns: 0,
        max_record_size: 64 << 20,
    };
}

/// What a full stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// The writer waits.
    Block,
    /// A newer record replaces the waiting one; counted.
    Latest,
    /// The new record is dropped; counted.
    DropNewest,
    /// The oldest records are dropped; counted.
    DropOldest,
    /// The writer gets an error.
    Fail,
    /// A newer record replaces the waiting record with the same key; counted.
    Conflate {
        /// The index of the key among the fields of the element: a scalar, an enum, a string or a
        /// `list<u8>`.
        key: usize,
    },
}

/// The fields of the elements, if the function returns a stream of records.
pub fn stream_fields<'a>(types: &'a [TypeDef], function: &'a Function) -> Option<&'a [Field]> {
    let TypeKind::Stream(Some(element)) = &function.ok.as_ref()?.kind else {
        return None;
    };
    let TypeKind::Named(id) = resolve_alias(types, element).kind else {
        return None;
    };
    match &types[id.0].kind {
        TypeDefKind::Record(fields) => Some(fields),
        _ => None,
    }
}

/// The target of an alias, or of a chain of aliases. Other types are returned as they are.
pub fn resolve_alias<'a>(types: &'a [TypeDef], ty: &'a Type) -> &'a Type {
    match &ty.kind {
        TypeKind::Named(id) => match &types[id.0].kind {
            TypeDefKind::Alias(target) => resolve_alias(types, target),
            _ => ty,
        },
        _ => ty,
    }
}

/// Whether the function is an async destructor: a method that takes its resource by value.
pub fn is_destructor(function: &Function) -> bool {
    let own = function.params.first().map(|field| &field.ty.kind);
    matches!(function.kind, FunctionKind::Method(_)) && matches!(own, Some(TypeKind::Own(_)))
}

/// Whether the type itself is a stream or a future. As a parameter, it is written by the caller and
/// read by the service.
pub fn is_stream_or_future(ty: &Type) -> bool {
    matches!(ty.kind, TypeKind::Stream(_) | TypeKind::Future(_))
}

/// Whether a value of the type can contain handles: resources, streams and futures.
pub fn contains_handle(types: &[TypeDef], ty: &Type) -> bool {
    contains_kind(types, ty, |kind| {
        use TypeKind::{Borrow, Future, Own, Stream};
        matches!(kind, Own(_) | Borrow(_) | Stream(_) | Future(_))
    })
}

/// Whether a value of the type can contain streams or futures.
pub fn contains_stream(types: &[TypeDef], ty: &Type) -> bool {
    contains_kind(types, ty, |kind| {
        matches!(kind, TypeKind::Stream(_) | TypeKind::Future(_))
    })
}

/// Whether `is` holds for the type or for a type inside it. The elements of a stream do not count
/// as inside.
pub fn contains_kind(types: &[TypeDef], ty: &Type, is: fn(&TypeKind) -> bool) -> bool {
    let inner = |ty: &Type| contains_kind(types, ty, is);
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
