//! The contents of a header: shapes, resources, streams and calls, with all their names in C.

use super::collect::{Alias, Collector, wit};
use super::host::{self, Host};
use super::names::{self, Names};
use super::shape::{Form, Shapes};
use super::{naming, stream_writer, usage};
use crate::SourceError;
use crate::model::{Function, FunctionKind, Package, Type, TypeKind};

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

/// A type of stream or future that the service writes. There is one per type of element.
pub struct Stream {
    /// `None`: the elements carry nothing; they are `void` in C.
    pub element: Option<Form>,
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
        let mut collector = Collector::new(package)?;
        let mut stream_writers = Vec::new();
        let mut calls = Vec::new();
        for function in &package.functions {
            calls.push(call(
                package,
                &mut collector,
                &mut stream_writers,
                function,
            )?);
        }
        let mut imports = Vec::new();
        for function in package.host.iter().flat_map(|host| &host.functions) {
            imports.push(call(
                package,
                &mut collector,
                &mut stream_writers,
                function,
            )?);
        }
        let Collector {
            mut shapes,
            mut aliases,
            mut streams,
            ..
        } = collector;
        usage::mark(
            &mut shapes,
            &aliases,
            &calls,
            &imports,
            &streams,
            &stream_writers,
        );
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
        let host = host::plan(package, imports, &mut names);
        naming::name_shapes(&mut shapes, &mut names, false);
        naming::name_streams(&mut streams, &mut shapes, &mut names);
        stream_writer::name(&mut stream_writers, &shapes, &mut names);
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

/// A function whose names are still empty.
fn call<'a>(
    package: &'a Package,
    collector: &mut Collector<'a>,
    stream_writers: &mut Vec<StreamWriter>,
    function: &'a Function,
) -> Result<Call<'a>, SourceError> {
    let position = &function.position;
    let mut parameters = Vec::new();
    for field in &function.params {
        let kind = match field.ty.kind {
            TypeKind::Own(id) => ParameterKind::Handle {
                resource: id.0,
                is_own: true,
            },
            TypeKind::Borrow(id) => ParameterKind::Handle {
                resource: id.0,
                is_own: false,
            },
            _ => match stream_writer::parameter(
                package,
                collector,
                stream_writers,
                function,
                &field.ty,
            )? {
                Some(stream_writer) => stream_writer,
                None => ParameterKind::Value(collector.form(&field.ty, position)?),
            },
        };
        parameters.push(Parameter {
            name: names::parameter(&field.name),
            docs: field.docs.clone(),
            kind,
            offset: field.offset,
        });
    }
    let ok = match &function.ok {
        None => ResultKind::Nothing,
        Some(Type {
            kind: TypeKind::Own(id),
            ..
        }) => ResultKind::Own(id.0),
        Some(Type {
            kind: TypeKind::Stream(element),
            ..
        }) => ResultKind::Stream(collector.stream(element.as_deref(), false, position)?),
        Some(Type {
            kind: TypeKind::Future(value),
            ..
        }) => ResultKind::Stream(collector.stream(value.as_deref(), true, position)?),
        Some(ty) => ResultKind::Value(collector.form(ty, position)?),
    };
    let payload = function.error.as_ref().and_then(Option::as_ref);
    let error = match payload {
        Some(ty) => Some(collector.form(ty, position)?),
        None => None,
    };
    Ok(Call {
        function,
        signature: signature(package, function),
        method: String::new(),
        blocking: String::new(),
        prepare: String::new(),
        read: String::new(),
        stream_error: String::new(),
        result: String::new(),
        parameters,
        ok,
        error,
        ok_size: function.ok.as_ref().map_or(0, |ty| ty.size),
        error_size: payload.map_or(0, |ty| ty.size),
    })
}
/// `async func(pattern: string, dir: string) -> result<u64, search-error>`
fn signature(package: &Package, function: &Function) -> String {
    let params: Vec<_> = function
        .params
        .iter()
        .filter(|field| field.name != "self")
        .map(|field| format!("{}: {}", field.name, wit(package, &field.ty)))
        .collect();
    let ok = function.ok.as_ref().map(|ty| wit(package, ty));
    let result = match (&ok, &function.error) {
        (None, None) => String::new(),
        (Some(ok), None) => format!(" -> {ok}"),
        (None, Some(None)) => " -> result".to_owned(),
        (Some(ok), Some(None)) => format!(" -> result<{ok}>"),
        (ok, Some(Some(error))) => {
            let ok = ok.as_deref().unwrap_or("_");
            format!(" -> result<{ok}, {}>", wit(package, error))
        }
    };
    let params = params.join(", ");
    match function.kind {
        FunctionKind::Constructor(_) => format!("constructor({params}){result}"),
        kind => {
            let is_static = if matches!(kind, FunctionKind::Static(_)) {
                "static "
            } else {
                ""
            };
            let is_async = if function.is_async { "async " } else { "" };
            format!("{is_static}{is_async}func({params}){result}")
        }
    }
}
