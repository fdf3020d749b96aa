//! The types as C sees them: each that needs a name in C is a shape.
//!
//! A type has up to three faces. *Flat*: as it lies in a message or a batch. *In*: what a caller fills, with
//! pointers in the place of slices; spelled `.._in`. *View*: what an accessor gives. A type without text and lists
//! inside is plain: its flat struct is all three.

/// Types that C has itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(super) enum Scalar {
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
    pub(super) fn c(self) -> &'static str {
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

    /// As WIT spells it.
    pub(super) fn wit(self) -> &'static str {
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
}

/// The unsigned C type of so many bytes.
pub(super) fn unsigned(size: u32) -> &'static str {
    match size {
        1 => "uint8_t",
        2 => "uint16_t",
        _ => "uint32_t",
    }
}

/// Every number of `size` bytes is one of `count` cases: a comparison would always hold, and compilers warn.
pub(super) fn is_full(count: usize, size: u32) -> bool {
    count as u64 >= 1 << (8 * size)
}

/// A type where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Scalar(Scalar),
    /// `string`
    Text,
    /// `list<u8>`
    Bytes,
    /// A handle, by what it is of: index into [`Shapes::1`].
    Held(usize),
    /// Index into [`Shapes`].
    Shape(usize),
}

/// A member of a record; of a tuple `f0`, `f1` and so on.
pub(super) struct Member {
    pub(super) name: String,
    /// As WIT has it; empty in a tuple.
    pub(super) wit: String,
    /// C's name of its accessor, where it has one.
    pub(super) access: String,
    pub(super) docs: String,
    pub(super) form: Form,
    pub(super) offset: u32,
}

/// A case of a variant, or one side of a result.
pub(super) struct Case {
    /// Of the union's member.
    pub(super) name: String,
    /// As WIT has it.
    pub(super) wit: String,
    /// `SEARCH_ERROR_GLOB`; claimed late, by [`super::plan`].
    pub(super) constant: String,
    /// C's name of its accessor, where it has one.
    pub(super) access: String,
    pub(super) docs: String,
    pub(super) payload: Option<Form>,
}

/// A case of an enum, or a flag.
pub(super) struct Label {
    pub(super) wit: String,
    pub(super) constant: String,
    pub(super) docs: String,
}

pub(super) enum ShapeKind {
    Record(Vec<Member>),
    Variant {
        tag_size: u32,
        payload_offset: u32,
        cases: Vec<Case>,
    },
    Enum(Vec<Label>),
    Flags(Vec<Label>),
    Option {
        payload_offset: u32,
        value: Form,
    },
    List {
        element: Form,
        size: u32,
        align: u32,
    },
    /// A list of a fixed length: a struct with the elements in it, each of `size` bytes.
    Array {
        element: Form,
        count: u32,
        size: u32,
    },
}

/// Where a shape occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// In parameters.
    pub(super) goes_in: bool,
    /// In results, errors or streams; or nowhere at all, but it has a name.
    pub(super) comes_out: bool,
    /// In results or errors, which are checked before they are read.
    pub(super) checked: bool,
}

pub(super) struct Shape {
    /// It has a name in WIT.
    pub(super) named: bool,
    /// The name without the package's prefix: `match`, `option_list_u8`.
    pub(super) stem: String,
    /// As WIT writes the type.
    pub(super) wit: String,
    pub(super) docs: String,
    pub(super) kind: ShapeKind,
    pub(super) size: u32,
    /// Nothing in it points anywhere.
    pub(super) plain: bool,
    /// A value can have resources in it.
    pub(super) holds: bool,
    pub(super) usage: Usage,
    /// C's name of the flat struct; of a list, that of the view.
    pub(super) flat: String,
    /// C's name of the struct to fill.
    pub(super) input: String,
    /// C's names of the functions.
    pub(super) write: String,
    pub(super) check: String,
    /// Of one that holds resources: of the function that counts them.
    pub(super) held: String,
    pub(super) get: String,
    /// Of a list of slices, in place or not: of the function that gives an element.
    pub(super) at: String,
}

impl Shape {
    /// Passed by pointer: a struct, but for a list, which is two words.
    pub(super) fn is_struct(&self) -> bool {
        match self.kind {
            ShapeKind::Record(_)
            | ShapeKind::Variant { .. }
            | ShapeKind::Option { .. }
            | ShapeKind::Array { .. } => true,
            ShapeKind::Flags(_) => self.size > 4,
            ShapeKind::Enum(_) | ShapeKind::List { .. } => false,
        }
    }

    /// Needs its flat struct (a list has none).
    pub(super) fn has_flat(&self) -> bool {
        self.usage.comes_out || self.plain
    }
}

/// All shapes, each after those it uses.
pub(super) struct Shapes(
    pub(super) Vec<Shape>,
    /// What stands in values by a handle: all resources, by their numbers, and behind them the streams and futures that do.
    pub(super) Vec<Held>,
);

/// What stands in a value by a handle.
pub(super) struct Held {
    /// Part of a name: `query`, `u64_stream`.
    pub(super) stem: String,
    /// Of a stream or a future.
    pub(super) stream: Option<HeldStream>,
}

/// A stream or a future in a value.
pub(super) struct HeldStream {
    /// Index into `Plan::streams`.
    pub(super) index: usize,
    pub(super) element: Option<Form>,
    /// As the stream is called.
    pub(super) name: String,
}

impl Shapes {
    pub(super) fn get(&self, index: usize) -> &Shape {
        &self.0[index]
    }

    /// C's type of a value in place.
    pub(super) fn flat(&self, form: Form) -> &str {
        match form {
            Form::Scalar(scalar) => scalar.c(),
            Form::Text | Form::Bytes => "tw_slice",
            Form::Held(_) => "tw_handle_ref",
            Form::Shape(_) if self.is_list(form) => "tw_slice",
            Form::Shape(index) => &self.get(index).flat,
        }
    }

    /// C's type of a value to fill in.
    pub(super) fn input(&self, form: Form) -> &str {
        match form {
            Form::Scalar(scalar) => scalar.c(),
            Form::Text => "tw_text",
            Form::Bytes => "tw_bytes",
            Form::Held(_) => "tw_resource",
            Form::Shape(index) => &self.get(index).input,
        }
    }

    /// C's type of what an accessor gives.
    pub(super) fn view(&self, form: Form) -> String {
        match form {
            Form::Shape(index) if self.is_struct(form) => {
                format!("const {} *", self.get(index).flat)
            }
            Form::Shape(index) => self.get(index).flat.clone(),
            Form::Held(_) => self.flat(form).to_owned(),
            _ => self.input(form).to_owned(),
        }
    }

    pub(super) fn is_struct(&self, form: Form) -> bool {
        matches!(form, Form::Shape(index) if self.get(index).is_struct())
    }

    pub(super) fn is_list(&self, form: Form) -> bool {
        matches!(form, Form::Shape(index) if matches!(self.get(index).kind, ShapeKind::List { .. }))
    }

    /// A slice in place: text, bytes or a list.
    pub(super) fn is_slice(&self, form: Form) -> bool {
        matches!(form, Form::Text | Form::Bytes) || self.is_list(form)
    }

    /// An option with a slice somewhere inside.
    pub(super) fn is_open_option(&self, form: Form) -> bool {
        matches!(form, Form::Shape(index)
            if matches!(self.get(index).kind, ShapeKind::Option { .. }) && !self.get(index).plain)
    }

    pub(super) fn is_plain(&self, form: Form) -> bool {
        match form {
            Form::Scalar(_) => true,
            Form::Text | Form::Bytes | Form::Held(_) => false,
            Form::Shape(index) => self.get(index).plain,
        }
    }

    /// A value can have handles in it.
    pub(super) fn holds(&self, form: Form) -> bool {
        match form {
            Form::Held(_) => true,
            Form::Shape(index) => self.get(index).holds,
            _ => false,
        }
    }

    /// Every bit pattern is a value: there is nothing to check.
    pub(super) fn is_trivial(&self, form: Form) -> bool {
        match form {
            Form::Scalar(scalar) => !matches!(scalar, Scalar::Bool | Scalar::Char),
            Form::Text | Form::Bytes | Form::Held(_) => false,
            Form::Shape(index) => match &self.get(index).kind {
                ShapeKind::Record(members) => {
                    members.iter().all(|member| self.is_trivial(member.form))
                }
                ShapeKind::Array { element, .. } => self.is_trivial(*element),
                ShapeKind::Flags(labels) => labels.len() as u32 == self.get(index).size * 8,
                ShapeKind::Enum(labels) => is_full(labels.len(), self.get(index).size),
                _ => false,
            },
        }
    }

    /// Part of a name: `option_list_u8`.
    /// Of a stream's element, if it has one.
    pub(super) fn stem_of(&self, form: Option<Form>) -> &str {
        form.map_or("void", |form| self.stem(form))
    }

    pub(super) fn stem(&self, form: Form) -> &str {
        match form {
            Form::Scalar(scalar) => scalar.wit(),
            Form::Text => "string",
            Form::Bytes => "list_u8",
            Form::Held(index) => &self.1[index].stem,
            Form::Shape(index) => &self.get(index).stem,
        }
    }
}
