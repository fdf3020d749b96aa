//! The contents of a Rust file, with names as the author wrote them.

use crate::model::Position;
use std::collections::BTreeSet;

/// The interface that a file declares.
#[derive(Debug)]
pub struct Api {
    /// `thalweg:search@0.1.0`.
    pub package: String,
    /// `search` in `thalweg:search@0.1.0`.
    pub name: String,
    /// The name of the service trait.
    pub service: Named,
    /// The options of the interface in the policy file: keys and values.
    pub options: Vec<(String, String)>,
    pub functions: Vec<Function>,
    pub values: Vec<Value>,
    pub resources: Vec<Resource>,
    /// The host imports.
    pub host: Option<Host>,
}

/// The trait of the host imports.
#[derive(Debug)]
pub struct Host {
    pub named: Named,
    pub functions: Vec<Function>,
}

/// A name with its documentation and position.
#[derive(Clone, Debug)]
pub struct Named {
    pub ident: String,
    pub docs: Vec<String>,
    pub position: Position,
}

#[derive(Debug)]
pub struct Value {
    pub named: Named,
    pub kind: ValueKind,
}

#[derive(Debug)]
pub enum ValueKind {
    Record(Vec<(Named, Type)>),
    /// The cases with their payloads. Without payloads it becomes an `enum`, otherwise a `variant`.
    Enum(Vec<(Named, Vec<Type>)>),
    /// Fields of type `bool`, which become `flags`.
    Flags(Vec<Named>),
}

#[derive(Debug)]
pub struct Resource {
    pub named: Named,
    pub functions: Vec<Function>,
    /// The async destructor, which is in the policy file instead of the WIT file.
    pub destructor: Option<Function>,
}

#[derive(Debug)]
pub struct Function {
    pub named: Named,
    pub kind: FunctionKind,
    pub is_async: bool,
    /// It runs on the caller's thread, without access to the instance.
    pub is_inline: bool,
    pub params: Vec<(Named, Param)>,
    pub ok: Option<Return>,
    /// `Some` if it returns a `Result`. The inner `None` is the error type `()`.
    pub error: Option<Option<Type>>,
    /// The options in the policy file: keys and values.
    pub options: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    Method,
    Constructor,
    Static,
    /// `async fn destroy`.
    Destructor,
}

/// The type of a parameter.
#[derive(Debug)]
pub enum Param {
    /// `&Call`, which WIT does not have.
    Call,
    Value(Type),
    Str,
    Slice(Type),
    /// `&R`.
    Borrow(String),
    /// `Arc<R>`.
    Own(String),
    /// An iterator over the elements that the caller sends. `None`: of `()`.
    Stream(Option<Type>, TraitForm),
    /// A future of the value that the caller sends. `None`: of `()`.
    Future(Option<Type>, TraitForm),
}

/// The form of a trait that is used as a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraitForm {
    /// `impl TRAIT`.
    Impl,
    /// `Box<dyn TRAIT>`, `Pin<Box<dyn TRAIT>>`.
    Boxed,
}

/// The return type of a function, or its ok side.
#[derive(Debug)]
pub enum Return {
    Value(Type),
    Own(String),
    /// An iterator, whose items are the elements of a stream. `None`: of `()`.
    Stream(Option<Type>),
    /// An iterator of `Result<T, CallError<E>>`, whose first error ends the stream. `None`: of
    /// `()`.
    FallibleStream(Option<Type>),
    /// A future. `None`: of `()`.
    Future(Option<Type>),
}

impl Api {
    /// The names of the values that host imports use, directly or inside other values. WIT declares
    /// them in the interface of the host imports.
    pub fn host_values(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for function in self.host.iter().flat_map(|host| &host.functions) {
            function.names(&mut names);
        }
        loop {
            let before = names.len();
            for value in &self.values {
                if names.contains(&value.named.ident) {
                    value.names(&mut names);
                }
            }
            if names.len() == before {
                return names;
            }
        }
    }
}

impl Function {
    /// Adds the names of the values that the function uses.
    pub fn names(&self, names: &mut BTreeSet<String>) {
        for (_, param) in &self.params {
            match param {
                Param::Value(ty) | Param::Slice(ty) => ty.names(names),
                Param::Stream(item, _) | Param::Future(item, _) => {
                    item.iter().for_each(|ty| ty.names(names));
                }
                Param::Call | Param::Str | Param::Borrow(_) | Param::Own(_) => {}
            }
        }
        match &self.ok {
            Some(Return::Value(ty)) => ty.names(names),
            Some(Return::Stream(item) | Return::FallibleStream(item) | Return::Future(item)) => {
                item.iter().for_each(|ty| ty.names(names));
            }
            Some(Return::Own(_)) | None => {}
        }
        self.error.iter().flatten().for_each(|ty| ty.names(names));
    }
}

impl Value {
    /// Adds the names of the values inside this value.
    pub fn names(&self, names: &mut BTreeSet<String>) {
        match &self.kind {
            ValueKind::Record(fields) => fields.iter().for_each(|(_, ty)| ty.names(names)),
            ValueKind::Enum(cases) => {
                let carried = cases.iter().flat_map(|(_, carried)| carried);
                carried.for_each(|ty| ty.names(names));
            }
            ValueKind::Flags(_) => {}
        }
    }
}

/// The type of a value.
#[derive(Clone, Debug)]
pub enum Type {
    /// A type that both sides share, by its WIT name.
    Plain(&'static str),
    BoxedStr,
    List(Box<Type>),
    BoxedList(Box<Type>),
    Array(Box<Type>, u32),
    Option(Box<Type>),
    Result(Option<Box<Type>>, Option<Box<Type>>),
    Tuple(Vec<Type>),
    Named(String),
    /// `Owned<R>`.
    Owned(String),
    /// `Owned<StreamReader<T>>` or `Owned<FutureReader<T>>`: `stream` or `future`, and its element.
    /// `None`: of `()`.
    OwnedStream(&'static str, Option<Box<Type>>),
}

impl Type {
    fn names(&self, names: &mut BTreeSet<String>) {
        match self {
            Self::Plain(_) | Self::BoxedStr | Self::Owned(_) => {}
            Self::OwnedStream(_, item) => item.iter().for_each(|ty| ty.names(names)),
            Self::List(item)
            | Self::BoxedList(item)
            | Self::Array(item, _)
            | Self::Option(item) => {
                item.names(names);
            }
            Self::Result(ok, error) => ok.iter().chain(error).for_each(|ty| ty.names(names)),
            Self::Tuple(items) => items.iter().for_each(|ty| ty.names(names)),
            Self::Named(ident) => {
                names.insert(ident.clone());
            }
        }
    }
}
