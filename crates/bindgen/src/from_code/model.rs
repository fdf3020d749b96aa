//! What was read from a Rust file: names as the author wrote them.

use crate::model::Position;
use std::collections::BTreeSet;

/// The file.
#[derive(Debug)]
pub struct Api {
    /// `thalweg:search@0.1.0`.
    pub package: String,
    /// `search` of it.
    pub name: String,
    /// The trait.
    pub service: Named,
    /// `max_queued_calls`, `max_queued_bytes` and `overflow`, as the policy file writes them.
    pub bounds: Vec<(String, String)>,
    pub functions: Vec<Function>,
    pub values: Vec<Value>,
    pub resources: Vec<Resource>,
    /// What it asks of its host.
    pub host: Option<Host>,
}

/// The other trait: what the host has for the service.
#[derive(Debug)]
pub struct Host {
    pub named: Named,
    pub functions: Vec<Function>,
}

/// A name with its documentation and place.
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
    /// Cases with what each carries. Where none carries anything it is WIT's `enum`.
    Enum(Vec<(Named, Vec<Type>)>),
    /// Fields of `bool`: WIT's `flags`.
    Flags(Vec<Named>),
}

#[derive(Debug)]
pub struct Resource {
    pub named: Named,
    pub functions: Vec<Function>,
    /// Its async one, which the WIT file does not have.
    pub destructor: Option<Function>,
}

#[derive(Debug)]
pub struct Function {
    pub named: Named,
    pub kind: Kind,
    pub is_async: bool,
    /// It runs on the caller's thread and sees no instance.
    pub is_inline: bool,
    pub params: Vec<(Named, Param)>,
    pub ok: Option<Out>,
    /// `Some`: it returns a `Result`; the inner `None` is `()`.
    pub error: Option<Option<Type>>,
    /// Keys and values of the policy file.
    pub options: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Method,
    Constructor,
    Static,
    /// An async one, `destroy`.
    Destructor,
}

/// How a parameter is passed.
#[derive(Debug)]
pub enum Param {
    /// `&Call`: of Rust alone.
    Call,
    Value(Type),
    Str,
    Slice(Type),
    /// `&R`.
    Borrow(String),
    /// `Arc<R>`.
    Own(String),
    /// An iterator that the caller feeds; `None`: of `()`.
    Stream(Option<Type>, Form),
    /// A future whose value the caller says; `None`: of `()`.
    Future(Option<Type>, Form),
}

/// How a trait stands where a type does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `impl TRAIT`.
    Impl,
    /// `Box<dyn TRAIT>`, `Pin<Box<dyn TRAIT>>`.
    Boxed,
}

/// What a function returns.
#[derive(Debug)]
pub enum Out {
    Value(Type),
    Own(String),
    /// An iterator, sent item by item; `None`: of `()`.
    Stream(Option<Type>),
    /// An iterator of `Result<T, CallError<E>>`: its first error ends the stream. `None`: of `()`.
    Failing(Option<Type>),
    /// A future, whose value is sent when it is there; `None`: of `()`.
    Future(Option<Type>),
}

impl Api {
    /// The values that its host's functions take and give, and those inside of them: WIT has them with the host.
    pub fn of_host(&self) -> BTreeSet<String> {
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
    /// The values that it names.
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
            Some(Out::Value(ty)) => ty.names(names),
            Some(Out::Stream(item) | Out::Failing(item) | Out::Future(item)) => {
                item.iter().for_each(|ty| ty.names(names));
            }
            Some(Out::Own(_)) | None => {}
        }
        self.error.iter().flatten().for_each(|ty| ty.names(names));
    }
}

impl Value {
    /// The values that stand in it.
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

/// A type of a value.
#[derive(Clone, Debug)]
pub enum Type {
    /// As WIT calls it; the same on both sides.
    Plain(&'static str),
    BoxedStr,
    List(Box<Type>),
    BoxedList(Box<Type>),
    Array(Box<Type>, u32),
    Option(Box<Type>),
    Result(Option<Box<Type>>, Option<Box<Type>>),
    Tuple(Vec<Type>),
    Named(String),
    /// `Held<R>`.
    Held(String),
    /// `Held<StreamReader<T>>` or `Held<FutureReader<T>>`, as WIT calls it; `()` is nothing.
    HeldFlow(&'static str, Option<Box<Type>>),
}

impl Type {
    fn names(&self, names: &mut BTreeSet<String>) {
        match self {
            Self::Plain(_) | Self::BoxedStr | Self::Held(_) => {}
            Self::HeldFlow(_, item) => item.iter().for_each(|ty| ty.names(names)),
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
