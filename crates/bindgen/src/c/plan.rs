//! The contents of a header: shapes, resources, streams and calls, with all their names in C.

use super::guest;
use super::host::{self, Host};
use super::names::{self, Names, PARAMETER};
use super::shape::{Form, Shapes};
use super::{naming, shapes, stream_writer};
use crate::SourceError;
use crate::model::{Function, Package, TypeDefKind};
use crate::plan::{self, Unsupported, spell_signature};

/// How a parameter is passed.
pub enum ParameterKind {
    /// A value.
    Value(Form),
    /// A resource.
    Handle {
        /// An index into [`Plan::resources`].
        resource: usize,
        /// It belongs to the service afterwards.
        is_own: bool,
    },
    /// A stream or future that the caller writes.
    StreamWriter {
        /// An index into [`Plan::stream_writers`].
        writer: usize,
        /// The function that creates it.
        open: String,
    },
}

/// A parameter.
pub struct Parameter {
    /// The name in C.
    pub name: String,
    /// The documentation in WIT.
    pub docs: String,
    /// How it is passed.
    pub kind: ParameterKind,
    /// The offset in the root of the arguments.
    pub offset: u32,
}

/// The type of a result, without its error side.
pub enum ResultKind {
    /// No result.
    Nothing,
    /// A value.
    Value(Form),
    /// A resource: an index into [`Plan::resources`].
    Own(usize),
    /// A stream or future: an index into [`Plan::streams`].
    Stream(usize),
}

/// A function, a constructor or a method.
pub struct Call<'a> {
    /// The function in the model.
    pub function: &'a Function,
    /// The type of the function in WIT, on one line.
    pub(super) signature: String,
    /// The constant for its number.
    pub method: String,
    /// The function that makes a blocking call.
    pub(super) blocking: String,
    /// The function that fills in a `tw_request`.
    pub prepare: String,
    /// The function that decodes a completion.
    pub read: String,
    /// The function that reads its error at the end of its stream. Empty if it has no stream or no
    /// error.
    pub(super) stream_error: String,
    /// The struct of its result.
    pub result: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Its result.
    pub ok: ResultKind,
    /// The type of its error payload.
    pub error: Option<Form>,
    /// Bytes of the result's root.
    pub(super) ok_size: u32,
    /// Bytes of the error's root.
    pub(super) error_size: u32,
}

/// A resource.
pub struct Resource {
    pub(super) docs: String,
    pub(super) wit: String,
    /// The name of its struct.
    pub name: String,
    pub(super) close: String,
    /// The function that takes one out of a result.
    pub(super) take: String,
}

/// A type alias.
pub(super) struct Alias {
    pub(super) name: String,
    pub(super) docs: String,
    pub(super) form: Form,
}

/// A type of stream or future that the service writes. There is one per type of element.
pub struct Stream {
    /// `None`: the elements carry nothing; they are `void` in C.
    pub element: Option<Form>,
    pub(super) stem: String,
    /// The name of its struct, and the prefix of its functions: `search_match_stream`.
    pub name: String,
    /// The name of its batches.
    pub batch: String,
    /// The function that returns a record of a batch.
    pub at: String,
    /// The function that takes one out of a result. Empty if no result contains one.
    pub take: String,
    /// Bytes of an element.
    pub size: u32,
    /// It is a future: it ends after one element.
    pub is_future: bool,
}

/// A type of stream or future that the caller writes. There is one per type of element.
pub struct StreamWriter {
    /// `None`: the elements carry nothing.
    pub element: Option<Form>,
    pub(super) stem: String,
    /// The name of its struct, and the prefix of its functions: `search_match_stream_writer`.
    pub name: String,
    /// It is a future: it has one element.
    pub is_future: bool,
    pub(super) size: u32,
    pub(super) hash: u64,
}

/// The names that every header has.
pub struct FixedNames {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) layout: String,
    pub(super) library: String,
    pub(super) open: String,
    pub(super) expected: String,
    /// The struct of a client.
    pub client: String,
    /// The array of the methods.
    pub(super) methods: String,
    /// The array of the host imports.
    pub(super) imports: String,
}

/// The contents of a package's header.
pub struct Plan<'a> {
    /// The package.
    pub package: &'a Package,
    pub(super) names: Names,
    /// The names that every header has.
    pub fixed: FixedNames,
    /// The types.
    pub shapes: Shapes,
    pub(super) aliases: Vec<Alias>,
    /// The resources, in the order of the model.
    pub resources: Vec<Resource>,
    /// The streams and futures that the service writes.
    pub streams: Vec<Stream>,
    /// The streams and futures that the caller writes.
    pub stream_writers: Vec<StreamWriter>,
    /// The functions, in the order of their numbers.
    pub calls: Vec<Call<'a>>,
    pub(super) host: Option<Host<'a>>,
}

impl<'a> Plan<'a> {
    /// Plans the header of a package.
    ///
    /// # Errors
    /// A type that C cannot express.
    pub fn new(package: &'a Package) -> Result<Self, SourceError> {
        Self::build(package, host::plan)
    }

    /// Plans the header of a guest, given [`Package::for_guest`].
    ///
    /// # Errors
    /// As [`new`](Self::new), or a function that a guest in C cannot have.
    pub fn for_guest(package: &'a Package) -> Result<Self, SourceError> {
        let served = package.host.iter().flat_map(|host| &host.functions);
        crate::guest::refuse(package, served)?;
        Self::build(package, guest::plan)
    }

    /// `name_imports` names the functions that the program answers.
    fn build(
        package: &'a Package,
        name_imports: fn(&'a Package, Vec<Call<'a>>, &mut Names) -> Option<Host<'a>>,
    ) -> Result<Self, SourceError> {
        let mut names = Names::new(&package.name);
        let fixed = FixedNames {
            package: names.constant("package"),
            version: names.constant("version"),
            layout: names.constant("layout"),
            library: names.claim("library"),
            open: names.claim("open"),
            expected: names.claim("expected"),
            client: names.claim("client"),
            methods: names.claim("methods"),
            imports: names.claim("imports"),
        };
        for function in ["client_open", "client_attach", "client_close"] {
            names.claim(function);
        }
        let whole = plan::Plan::new(package);
        whole.refuse(&[Unsupported::NoMembers, Unsupported::BorrowInValue])?;
        let (mut shapes, forms) = shapes::of(&whole);
        let mut aliases = aliases(package, &whole, &forms);
        let calls = |functions: &[plan::Function<'a>]| -> Vec<Call<'a>> {
            let calls = functions
                .iter()
                .map(|function| call(package, &whole, &forms, function));
            calls.collect()
        };
        let (mut calls, imports) = (calls(&whole.functions), calls(&whole.imports));
        let streams = whole.streams.iter().map(|stream| Stream {
            element: stream.element.map(|element| forms[element.0]),
            stem: names::snake(whole.stem_of_element(stream)),
            name: String::new(),
            batch: String::new(),
            at: String::new(),
            take: String::new(),
            size: stream.element.map_or(0, |element| whole.get(element).size),
            is_future: stream.is_future,
        });
        let mut streams: Vec<_> = streams.collect();
        let stream_writers = whole.upstreams.iter().map(|stream| StreamWriter {
            element: stream.element.map(|element| forms[element.0]),
            stem: names::snake(whole.stem_of_element(stream)),
            name: String::new(),
            is_future: stream.is_future,
            size: stream.element.map_or(0, |element| whole.get(element).size),
            hash: stream.hash,
        });
        let mut stream_writers: Vec<_> = stream_writers.collect();
        // The order of the claims decides which name gets a `_`: first the names in WIT, then those
        // made from them.
        naming::name_shapes(&mut shapes, &mut names, true);
        for alias in &mut aliases {
            alias.name = names.claim(&alias.name);
        }
        let resources = naming::name_resources(package, &mut names);
        for call in &mut calls {
            naming::name_call(package, call, &mut names);
        }
        let host = name_imports(package, imports, &mut names);
        naming::name_shapes(&mut shapes, &mut names, false);
        naming::name_streams(&mut streams, &mut shapes, &mut names);
        stream_writer::name(&mut stream_writers, &mut names);
        naming::name_accessors(&mut shapes, &mut names);
        Ok(Plan {
            package,
            names,
            fixed,
            shapes,
            aliases,
            resources,
            streams,
            stream_writers,
            calls,
            host,
        })
    }

    /// The prefix of all names: `search`. The header is `search.h`.
    pub fn prefix(&self) -> &str {
        self.names.prefix()
    }
}

/// The aliases of a package, whose names are not claimed yet.
fn aliases(package: &Package, whole: &plan::Plan<'_>, forms: &[Form]) -> Vec<Alias> {
    let definitions = package.types.iter().zip(&whole.named);
    let aliases =
        definitions.filter(|(definition, _)| matches!(definition.kind, TypeDefKind::Alias(_)));
    let aliases = aliases.map(|(definition, target)| Alias {
        name: names::snake(&definition.name),
        docs: definition.docs.clone(),
        form: forms[target.0],
    });
    aliases.collect()
}

/// A function whose names are still empty.
fn call<'a>(
    package: &'a Package,
    whole: &plan::Plan<'_>,
    forms: &[Form],
    function: &plan::Function<'a>,
) -> Call<'a> {
    let parameters = function.parameters.iter().map(|parameter| Parameter {
        name: PARAMETER.of(parameter.name),
        docs: parameter.docs.to_owned(),
        kind: match parameter.kind {
            plan::ParameterKind::Value(ty) => ParameterKind::Value(forms[ty.0]),
            plan::ParameterKind::Resource { id, is_own } => ParameterKind::Handle {
                resource: id.0,
                is_own,
            },
            plan::ParameterKind::Stream(writer) => ParameterKind::StreamWriter {
                writer,
                open: String::new(),
            },
        },
        offset: parameter.offset,
    });
    let (ok, ok_size) = match function.ok {
        plan::ResultKind::Nothing => (ResultKind::Nothing, 0),
        plan::ResultKind::Value(ty) => (ResultKind::Value(forms[ty.0]), whole.get(ty).size),
        plan::ResultKind::Resource(id) => (ResultKind::Own(id.0), 0),
        plan::ResultKind::Stream(index) => (ResultKind::Stream(index), 0),
    };
    Call {
        function: function.function,
        signature: spell_signature(package, function.function),
        method: String::new(),
        blocking: String::new(),
        prepare: String::new(),
        read: String::new(),
        stream_error: String::new(),
        result: String::new(),
        parameters: parameters.collect(),
        ok,
        error: function.error.map(|ty| forms[ty.0]),
        ok_size,
        error_size: function.error.map_or(0, |ty| whole.get(ty).size),
    }
}
