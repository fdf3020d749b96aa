//! The intermediate form that every back end reads: types with their layout and direction,
//! functions, and the constructs that not every language can express.
//!
//! ```text
//!   model::Package --Plan::new--> Plan --> c, rust, python, ..
//!                                  |
//!                                  +-- names    spells names, and keeps them unique
//!                                  +-- source   writes lines, comments and templates
//!                                  +-- codec    prints code that writes, reads and checks messages
//! ```
//!
//! A type without a name has one entry, however often it is used. An alias has no entry: its users
//! refer to its target. A back end that writes the names of aliases takes them from the model.
//!
//! Directions are those of the caller: a type *goes in* if the caller writes it, and *comes out* if
//! the caller reads it. In a host import both are reversed, and so is a stream that is a parameter.

pub mod codec;
mod columns;
mod intern;
pub mod names;
mod refusal;
pub mod source;
mod spell;
mod types;
mod usage;

pub use crate::model::Scalar;
pub use columns::Column;
pub use refusal::Unsupported;
pub use spell::{spell, spell_signature};
pub use types::{Case, Handle, Kind, Member, Type, TypeIndex, Usage};

use crate::SourceError;
use crate::hash::Describer;
use crate::model::{self, FunctionKind, Package, ResourceId};
use intern::Interner;
use refusal::Refusal;
use std::collections::HashMap;

/// A package with everything that the back ends would otherwise compute themselves.
///
/// ```
/// use thalweg_bindgen::parse_text;
/// use thalweg_bindgen::plan::{Kind, Plan};
///
/// let wit = "package a:b@0.1.0; interface i { f: func(p: tuple<u8, u64>); } world w { export i; }";
/// let package = parse_text("b.wit".as_ref(), wit, "")?;
/// let plan = Plan::new(&package);
/// let Kind::Record(parts) = &plan.types.last().expect("the tuple").kind else { panic!() };
/// assert_eq!((parts[0].offset, parts[1].offset), (0, 8));
/// # Ok::<(), thalweg_bindgen::SourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The package.
    pub package: &'a Package,
    /// All types, each after those that it uses. A [`TypeIndex`] is an index into this list.
    pub types: Vec<Type<'a>>,
    /// The type of each [`TypeId`](model::TypeId); for an alias, the type of its target.
    pub named: Vec<TypeIndex>,
    /// The streams and futures that the service writes: results, and those inside results.
    pub streams: Vec<Stream>,
    /// The streams and futures that the caller writes: parameters.
    pub upstreams: Vec<Stream>,
    /// The functions, in the order of their numbers.
    pub functions: Vec<Function<'a>>,
    /// The host imports, in the order of their numbers.
    pub imports: Vec<Function<'a>>,
    refusals: Vec<Refusal>,
    anonymous: HashMap<String, TypeIndex>,
}

/// A stream or a future. There is one entry per type of element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// `None`: the elements carry nothing.
    pub element: Option<TypeIndex>,
    /// It ends after one element.
    pub is_future: bool,
    /// The layout hash of an element, or of `_`.
    pub hash: u64,
}

/// A function, a constructor or a method.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// The function in the model.
    pub function: &'a model::Function,
    /// The parameters, laid out as one record. The first one of a method is the resource.
    pub parameters: Vec<Parameter<'a>>,
    /// The result without its error side.
    pub ok: ResultKind,
    /// The type of the error payload. `None`: no error, or one without a payload.
    pub error: Option<TypeIndex>,
}

impl<'a> Function<'a> {
    /// The resource on which a method is called, which is the first parameter.
    pub fn resource(&self) -> Option<ResourceId> {
        match self.function.kind {
            FunctionKind::Method(id) => Some(id),
            _ => None,
        }
    }

    /// The parameters that a caller writes, with their numbers: all but the resource of a method.
    pub fn written(&self) -> impl Iterator<Item = (usize, &Parameter<'a>)> + Clone {
        let parameters = self.parameters.iter().enumerate();
        parameters.skip(usize::from(self.resource().is_some()))
    }
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter<'a> {
    /// The name in WIT.
    pub name: &'a str,
    /// The documentation in WIT.
    pub docs: &'a str,
    /// What is passed.
    pub kind: ParameterKind,
    /// The offset in the root of the arguments.
    pub offset: u32,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A value.
    Value(TypeIndex),
    /// A resource.
    Resource {
        /// The resource.
        id: ResourceId,
        /// It belongs to the service after the call.
        is_own: bool,
    },
    /// A stream or future that the caller writes: an index into [`Plan::upstreams`].
    Stream(usize),
}

/// What the ok side of a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// No value.
    Nothing,
    /// A value.
    Value(TypeIndex),
    /// A resource.
    Resource(ResourceId),
    /// A stream or future: an index into [`Plan::streams`].
    Stream(usize),
}

impl<'a> Plan<'a> {
    /// Computes the plan of a package. It never fails: [`Plan::refuse`] reports what a language
    /// cannot express.
    pub fn new(package: &'a Package) -> Self {
        let mut interner = Interner::new(package);
        let imports = package.host.iter().flat_map(|host| &host.functions);
        let functions = package.functions.iter();
        let functions = functions
            .map(|function| interner.function(function))
            .collect();
        let imports = imports
            .map(|function| interner.function(function))
            .collect();
        let mut plan = interner.finish(functions, imports);
        usage::mark(&mut plan);
        plan
    }

    /// The type of this index.
    pub fn get(&self, index: TypeIndex) -> &Type<'a> {
        &self.types[index.0]
    }

    /// The type that a use in the model refers to.
    ///
    /// # Panics
    /// The type is not used in the package, or only as a parameter that is a resource or a stream.
    pub fn index_of(&self, ty: &model::Type) -> TypeIndex {
        match ty.kind {
            model::TypeKind::Named(id) => self.named[id.0],
            _ => self.anonymous[&spell::key(self.package, ty)],
        }
    }

    /// Part of a name of a stream or future, in kebab-case: the stem of its element, or `void`.
    pub fn stem_of_element(&self, stream: &Stream) -> &str {
        stream
            .element
            .map_or("void", |element| self.get(element).stem.as_str())
    }

    /// Whether a value of the type can contain streams or futures.
    pub fn has_streams(&self, index: TypeIndex) -> bool {
        let ty = self.get(index);
        match ty.kind {
            Kind::Handle(handle) => matches!(handle, Handle::Stream(_)),
            _ => {
                ty.has_handles
                    && ty
                        .kind
                        .parts()
                        .into_iter()
                        .any(|part| self.has_streams(part))
            }
        }
    }

    /// The number of handles in the arguments of a function. `None`: it depends on their values.
    pub fn handles(&self, function: &Function<'_>) -> Option<usize> {
        let has_handles = |parameter: &Parameter<'_>| match parameter.kind {
            ParameterKind::Value(ty) => self.get(ty).has_handles,
            _ => false,
        };
        let is_handle = |parameter: &&Parameter<'_>| match parameter.kind {
            ParameterKind::Value(_) => false,
            ParameterKind::Resource { .. } | ParameterKind::Stream(_) => true,
        };
        let parameters = &function.parameters;
        let count = parameters.iter().filter(is_handle).count();
        (!parameters.iter().any(has_handles)).then_some(count)
    }

    /// The name of a function in the class of the client or, for a method, of the resource: a
    /// constructor has the name of its resource, and a static function has both names.
    pub fn name_in_class(&self, function: &model::Function) -> String {
        let resource = |id: ResourceId| &self.package.resources[id.0].name;
        match function.kind {
            FunctionKind::Free | FunctionKind::Method(_) => function.name.clone(),
            FunctionKind::Constructor(id) => resource(id).clone(),
            FunctionKind::Static(id) => format!("{}-{}", resource(id), function.name),
        }
    }

    /// Whether the type is an option.
    pub fn is_option(&self, index: TypeIndex) -> bool {
        matches!(self.get(index).kind, Kind::Option { .. })
    }

    /// The number of the first parameters that a caller must pass, including the resource of a method:
    /// all but the options at the end.
    pub fn required(&self, function: &Function<'_>) -> usize {
        let is_option = |parameter: &&Parameter<'_>| match parameter.kind {
            ParameterKind::Value(ty) => self.is_option(ty),
            _ => false,
        };
        let last = function.parameters.iter().rev();
        function.parameters.len() - last.take_while(is_option).count()
    }

    /// The descriptions of the parameters, the result, the error payload and the stream element.
    /// Those that a function does not have are empty.
    pub fn descriptions(&self, function: &model::Function) -> Vec<String> {
        let texts = Describer {
            types: &self.package.types,
            resources: &self.package.resources,
        };
        let texts = texts.describe_function(function);
        texts.split('\n').map(str::to_owned).collect()
    }

    /// Reports the first construct of these kinds.
    ///
    /// # Errors
    /// The package has such a construct; the error has its position.
    pub fn refuse(&self, unsupported: &[Unsupported]) -> Result<(), SourceError> {
        let refused = |refusal: &&Refusal| unsupported.contains(&refusal.unsupported);
        match self.refusals.iter().find(refused) {
            None => Ok(()),
            Some(refusal) => Err(refusal.error()),
        }
    }
}
