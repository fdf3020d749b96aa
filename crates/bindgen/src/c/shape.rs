//! The types of a package as C sees them. A type that needs a name in C is a shape.
//!
//! A type has up to three C types. *Flat*: in a message or a batch. *Input*: filled in by a caller,
//! with pointers instead of slices; named `.._in`. *View*: returned by an accessor. A type that
//! contains neither text nor lists is plain: its flat struct is all three.

pub use crate::plan::{Scalar, Usage};

impl Scalar {
    /// The type in C.
    pub fn c(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::U8 => "uint8_t",
            Scalar::U16 => "uint16_t",
            Scalar::U32 | Scalar::Char => "uint32_t",
            Scalar::U64 => "uint64_t",
            Scalar::S8 => "int8_t",
            Scalar::S16 => "int16_t",
            Scalar::S32 => "int32_t",
            Scalar::S64 => "int64_t",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
        }
    }
}

/// The unsigned C type of `size` bytes.
pub(super) fn unsigned(size: u32) -> &'static str {
    match size {
        1 => "uint8_t",
        2 => "uint16_t",
        _ => "uint32_t",
    }
}

/// Every number of `size` bytes is one of `count` cases. A comparison would always be true, and
/// compilers warn about it.
pub(super) fn is_full(count: usize, size: u32) -> bool {
    count as u64 >= 1 << (8 * size)
}

/// A type where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A type that C has itself.
    Scalar(Scalar),
    /// `string`
    Text,
    /// `list<u8>`
    Bytes,
    /// A resource, stream or future: an index into [`Shapes::handles`].
    Handle(usize),
    /// An index into [`Shapes::all`].
    Shape(usize),
}

/// A field of a record; in a tuple `f0`, `f1` and so on.
pub struct Member {
    /// The name in C.
    pub name: String,
    /// The name in WIT; empty in a tuple.
    pub wit: String,
    /// The accessor, or empty.
    pub access: String,
    /// The documentation in WIT.
    pub docs: String,
    /// The type.
    pub form: Form,
    /// The offset in the flat struct.
    pub offset: u32,
}

/// A case of a variant, or a side of a result.
pub struct Case {
    /// The member of the union.
    pub name: String,
    /// The name in WIT.
    pub wit: String,
    /// `SEARCH_ERROR_GLOB`
    pub constant: String,
    /// The accessor, or empty.
    pub access: String,
    /// The documentation in WIT.
    pub docs: String,
    /// The type of the payload.
    pub payload: Option<Form>,
}

/// A case of an enum, or a flag.
pub struct Label {
    /// The name in WIT.
    pub wit: String,
    /// `SEARCH_KIND_FILE`
    pub constant: String,
    /// The documentation in WIT.
    pub docs: String,
}

/// The structure of a shape.
pub enum ShapeKind {
    /// A record or a tuple.
    Record(Vec<Member>),
    /// A variant or a result.
    Variant {
        /// Bytes of the discriminant.
        tag_size: u32,
        /// Offset of the payload.
        payload_offset: u32,
        /// The cases, in the order of their discriminants.
        cases: Vec<Case>,
    },
    /// An enum.
    Enum(Vec<Label>),
    /// Flags.
    Flags(Vec<Label>),
    /// An option.
    Option {
        /// Offset of the value.
        payload_offset: u32,
        /// The type of the value.
        value: Form,
    },
    /// A list.
    List {
        /// The type of the elements.
        element: Form,
        /// Bytes of an element.
        size: u32,
        /// Alignment of an element.
        align: u32,
    },
    /// A list of a fixed length: a struct that contains the elements.
    Array {
        /// The type of the elements.
        element: Form,
        /// The number of elements.
        count: u32,
        /// Bytes of an element.
        size: u32,
    },
}

/// A type that has a name in C.
pub struct Shape {
    /// It has a name in WIT.
    pub is_named: bool,
    /// The name without the package's prefix: `match`, `option_list_u8`.
    pub stem: String,
    /// The type in WIT.
    pub wit: String,
    /// The documentation in WIT.
    pub docs: String,
    /// The structure.
    pub kind: ShapeKind,
    /// Bytes of the flat struct.
    pub size: u32,
    /// It contains no slice and no handle.
    pub is_plain: bool,
    /// It is plain, and all of its bytes are written, so that it is copied as it is.
    pub(super) is_dense: bool,
    /// Every bit pattern is a value, so that there is nothing to check.
    pub(super) is_trivial: bool,
    /// It contains handles.
    pub has_handles: bool,
    /// Where it is used.
    pub usage: Usage,
    /// The flat struct; for a list its view.
    pub flat: String,
    /// The struct that a caller fills in.
    pub input: String,
    /// The function that writes it into a message.
    pub write: String,
    /// The function that checks it.
    pub check: String,
    /// If it contains handles, the function that counts them.
    pub count_handles: String,
    /// The function that returns the view of a list or the value of an option.
    pub get: String,
    /// For a list of slices, the function that returns an element; otherwise empty.
    pub at: String,
}

impl Shape {
    /// It is passed by pointer. A list is passed by value: its view has two words.
    pub fn is_struct(&self) -> bool {
        match self.kind {
            ShapeKind::Record(_)
            | ShapeKind::Variant { .. }
            | ShapeKind::Option { .. }
            | ShapeKind::Array { .. } => true,
            ShapeKind::Flags(_) => self.size > 4,
            ShapeKind::Enum(_) | ShapeKind::List { .. } => false,
        }
    }

    /// Its flat struct is declared. A list has none.
    pub(super) fn has_flat(&self) -> bool {
        self.usage.is_output || self.is_plain
    }
}

/// The types of a package.
#[derive(Default)]
pub struct Shapes {
    /// All shapes, each after those that it uses.
    pub all: Vec<Shape>,
    /// The types that values refer to by a handle: all resources, by their numbers, and then the
    /// streams and futures.
    pub handles: Vec<HandleType>,
}

/// A resource, or a stream or future inside a value.
pub struct HandleType {
    /// Part of a name: `query`, `u64_stream`.
    pub stem: String,
    /// Set for a stream or future.
    pub stream: Option<HandleStream>,
}

/// A stream or future inside a value.
pub struct HandleStream {
    /// An index into [`Plan::streams`](super::plan::Plan::streams).
    pub index: usize,
    /// The type of its elements.
    pub element: Option<Form>,
    /// The name of its struct.
    pub name: String,
}

impl Shapes {
    /// The shape of this index.
    pub fn get(&self, index: usize) -> &Shape {
        &self.all[index]
    }

    /// The C type in a message or batch.
    pub fn flat(&self, form: Form) -> &str {
        match form {
            Form::Scalar(scalar) => scalar.c(),
            Form::Text | Form::Bytes => "tw_slice",
            Form::Handle(_) => "tw_handle_ref",
            Form::Shape(_) if self.is_list(form) => "tw_slice",
            Form::Shape(index) => &self.get(index).flat,
        }
    }

    /// The C type that a caller fills in.
    pub fn input(&self, form: Form) -> &str {
        match form {
            Form::Scalar(scalar) => scalar.c(),
            Form::Text => "tw_text",
            Form::Bytes => "tw_bytes",
            Form::Handle(_) => "tw_resource",
            Form::Shape(index) => &self.get(index).input,
        }
    }

    /// The C type that an accessor returns.
    pub fn view(&self, form: Form) -> String {
        match form {
            Form::Shape(index) if self.is_struct(form) => {
                format!("const {} *", self.get(index).flat)
            }
            Form::Shape(index) => self.get(index).flat.clone(),
            Form::Handle(_) => self.flat(form).to_owned(),
            _ => self.input(form).to_owned(),
        }
    }

    /// A C expression for the view of the value at `place`, an lvalue. For a slice it uses the
    /// variable `base`.
    pub fn view_of(&self, form: Form, place: &str) -> String {
        match form {
            Form::Text => format!("tw_text_view(base, {place})"),
            Form::Bytes => format!("tw_bytes_view(base, {place})"),
            Form::Shape(index) if self.is_list(form) => {
                format!("{}(base, {place})", self.get(index).get)
            }
            _ if self.is_struct(form) => pointer_to(place),
            _ => place.to_owned(),
        }
    }

    /// The form is passed by pointer.
    pub fn is_struct(&self, form: Form) -> bool {
        matches!(form, Form::Shape(index) if self.get(index).is_struct())
    }

    /// The form is a list other than `list<u8>`.
    pub fn is_list(&self, form: Form) -> bool {
        matches!(form, Form::Shape(index) if matches!(self.get(index).kind, ShapeKind::List { .. }))
    }

    /// The form is a slice in a message: text, bytes or a list.
    pub fn is_slice(&self, form: Form) -> bool {
        matches!(form, Form::Text | Form::Bytes) || self.is_list(form)
    }

    /// The form is an option that contains a slice.
    pub(super) fn is_open_option(&self, form: Form) -> bool {
        matches!(form, Form::Shape(index)
            if matches!(self.get(index).kind, ShapeKind::Option { .. }) && !self.get(index).is_plain)
    }

    pub(super) fn is_plain(&self, form: Form) -> bool {
        match form {
            Form::Scalar(_) => true,
            Form::Text | Form::Bytes | Form::Handle(_) => false,
            Form::Shape(index) => self.get(index).is_plain,
        }
    }

    /// A value of the form can contain handles.
    pub fn has_handles(&self, form: Form) -> bool {
        match form {
            Form::Handle(_) => true,
            Form::Shape(index) => self.get(index).has_handles,
            _ => false,
        }
    }

    /// Every bit pattern is a value, so that there is nothing to check.
    pub(super) fn is_trivial(&self, form: Form) -> bool {
        match form {
            Form::Scalar(scalar) => scalar.is_number(),
            Form::Text | Form::Bytes | Form::Handle(_) => false,
            Form::Shape(index) => self.get(index).is_trivial,
        }
    }
}

/// A C expression for the address of an lvalue. `&*pointer` becomes `pointer`.
pub(super) fn pointer_to(place: &str) -> String {
    match place.strip_prefix('*') {
        Some(pointer) => pointer.to_owned(),
        None => format!("&{place}"),
    }
}

/// A C declaration's start, before the name: `uint64_t ` or `const search_point *`.
pub(super) fn before_name(ty: &str) -> String {
    match ty.ends_with('*') {
        true => ty.to_owned(),
        false => format!("{ty} "),
    }
}
