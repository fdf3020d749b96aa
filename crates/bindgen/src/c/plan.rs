//! What a header holds: shapes with their names and uses, resources, streams, calls.

use super::collect::{Alias, Collector, wit};
use super::host::{Asked, Host};
use super::names::{self, Names};
use super::shape::{Form, HeldStream, Shape, ShapeKind, Shapes, Usage};
use super::upstream::{self, Upstream};
use crate::SourceError;
use crate::model::{Function, FunctionKind, Package, Type, TypeKind};

/// A parameter.
pub(super) enum Passed {
    Value(Form),
    /// Index into [`Plan::resources`]; and whether the service takes it over.
    Handle {
        resource: usize,
        own: bool,
    },
    /// Index into [`Plan::upstreams`], and the function that makes it.
    Upstream {
        upstream: usize,
        open: String,
    },
}

pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) docs: String,
    pub(super) passed: Passed,
    pub(super) offset: u32,
}

/// The ok side of a result.
pub(super) enum Outcome {
    Nothing,
    Value(Form),
    /// Index into [`Plan::resources`].
    Own(usize),
    /// Index into [`Plan::streams`].
    Stream(usize),
}

/// A function, a constructor or a method.
pub(super) struct Call<'a> {
    pub(super) function: &'a Function,
    /// As WIT has it, on one line.
    pub(super) signature: String,
    pub(super) method: String,
    pub(super) blocking: String,
    pub(super) prepare: String,
    pub(super) submit: String,
    pub(super) read: String,
    /// Reads the function's error at the end of its stream; empty: it has no stream or no error.
    pub(super) stream_error: String,
    pub(super) result: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) ok: Outcome,
    /// The error's payload, where there is one.
    pub(super) error: Option<Form>,
    /// Sizes of the roots.
    pub(super) ok_size: u32,
    pub(super) error_size: u32,
}

pub(super) struct Resource {
    pub(super) docs: String,
    pub(super) wit: String,
    pub(super) name: String,
    pub(super) close: String,
    /// Of the function that takes one out of a value.
    pub(super) take: String,
}

/// One per type of element.
pub(super) struct Stream {
    /// `None`: it carries nothing but that it comes, a `void` in C.
    pub(super) element: Option<Form>,
    /// `search_match_stream`: the functions add `_acquire` and so on.
    pub(super) name: String,
    pub(super) batch: String,
    pub(super) at: String,
    /// Of the function that takes one out of a value; empty where none is in one.
    pub(super) take: String,
    pub(super) size: u32,
    /// It ends after one record: a future.
    pub(super) is_future: bool,
}

/// The names of what every header has.
pub(super) struct Fixed {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) layout: String,
    pub(super) library: String,
    pub(super) open: String,
    pub(super) expected: String,
    pub(super) client: String,
}

pub(super) struct Plan<'a> {
    pub(super) package: &'a Package,
    pub(super) names: Names,
    pub(super) fixed: Fixed,
    pub(super) shapes: Shapes,
    pub(super) aliases: Vec<Alias>,
    pub(super) resources: Vec<Resource>,
    pub(super) streams: Vec<Stream>,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) calls: Vec<Call<'a>>,
    pub(super) host: Option<Host<'a>>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(package: &'a Package) -> Result<Self, SourceError> {
        let mut names = Names::new(&package.name);
        let fixed = Fixed {
            package: names.constant("package"),
            version: names.constant("version"),
            layout: names.constant("layout"),
            library: names.claim("library"),
            open: names.claim("open"),
            expected: names.claim("expected"),
            client: names.claim("client"),
        };
        for made_from_client in ["client_open", "client_attach", "client_close"] {
            names.claim(made_from_client);
        }
        let mut collector = Collector::new(package)?;
        let mut upstreams = Vec::new();
        let mut calls = Vec::new();
        for function in &package.functions {
            let up = &mut upstreams;
            calls.push(call(package, &mut collector, up, function)?);
        }
        let mut asked = Vec::new();
        for function in package.host.iter().flat_map(|host| &host.functions) {
            let up = &mut upstreams;
            asked.push(call(package, &mut collector, up, function)?);
        }
        let Collector {
            mut shapes,
            mut aliases,
            mut streams,
            ..
        } = collector;
        for call in &calls {
            mark_call(&mut shapes, call, &streams);
        }
        for up in &upstreams {
            let goes_in = Usage {
                goes_in: true,
                ..Usage::default()
            };
            if let Some(form) = up.element {
                mark(&mut shapes, form, goes_in);
            }
        }
        for call in &asked {
            mark_asked(&mut shapes, call);
        }
        let unused = Usage::default();
        let aliased = |index| {
            let stands_for = |alias: &Alias| alias.form == Form::Shape(index);
            aliases.iter().any(stands_for)
        };
        for index in 0..shapes.0.len() {
            let has_name = shapes.get(index).named || aliased(index);
            if has_name && shapes.get(index).usage == unused {
                mark(
                    &mut shapes,
                    Form::Shape(index),
                    Usage {
                        comes_out: true,
                        ..unused
                    },
                );
            }
        }
        // Who has a name in WIT has the first choice, then what was made up for it.
        name_shapes(&mut shapes, &mut names, true);
        for alias in &mut aliases {
            alias.name = names.claim(&alias.name);
        }
        let resources = package.resources.iter().map(|resource| {
            let stem = names::snake(&resource.name);
            Resource {
                docs: resource.docs.clone(),
                wit: resource.name.clone(),
                name: names.claim(&stem),
                close: names.claim(&format!("{stem}_close")),
                take: names.claim(&format!("{stem}_take")),
            }
        });
        let resources = resources.collect();
        for call in &mut calls {
            name_call(package, call, &mut names);
        }
        let host = name_host(package, asked, &mut names);
        name_shapes(&mut shapes, &mut names, false);
        name_streams(&mut streams, &mut shapes, &mut names);
        upstream::name(&mut upstreams, &shapes, &mut names);
        name_accessors(&mut shapes, &mut names);
        Ok(Plan {
            package,
            names,
            fixed,
            shapes,
            aliases,
            resources,
            streams,
            upstreams,
            calls,
            host,
        })
    }
}

/// Names of streams and futures.
fn name_streams(streams: &mut [Stream], shapes: &mut Shapes, names: &mut Names) {
    for stream in &mut *streams {
        let stem = shapes.stem_of(stream.element);
        let (word, functions): (_, &[&str]) = match stream.is_future {
            true => ("future", &["wait", "close"]),
            false => (
                "stream",
                &[
                    "acquire",
                    "acquire_serving",
                    "release",
                    "arm",
                    "callback",
                    "deliver",
                    "subscribe",
                    "close",
                ],
            ),
        };
        stream.name = names.claim(&format!("{stem}_{word}"));
        if !stream.is_future {
            stream.batch = names.claim(&format!("{stem}_batch"));
            stream.at = names.claim(&format!("{stem}_batch_at"));
        }
        for function in functions {
            names.claim(&format!("{stem}_{word}_{function}"));
        }
    }
    for held in &mut shapes.1 {
        if let Some(held_stream) = &mut held.stream {
            let stream = &mut streams[held_stream.index];
            stream.take = names.claim(&format!("{}_take", held.stem));
            held_stream.name.clone_from(&stream.name);
        }
    }
}

/// Names of the named shapes, or of the others.
fn name_shapes(shapes: &mut Shapes, names: &mut Names, named: bool) {
    for shape in &mut shapes.0 {
        if shape.named != named {
            continue;
        }
        let stem = shape.stem.clone();
        shape.flat = names.claim(&stem);
    }
    for index in 0..shapes.0.len() {
        if shapes.get(index).named != named {
            continue;
        }
        let same = match shapes.get(index).kind {
            ShapeKind::List { element, .. } => shapes.is_plain(element),
            _ => shapes.get(index).plain,
        };
        let list = shapes.is_list(Form::Shape(index));
        let shape = &mut shapes.0[index];
        let stem = shape.stem.clone();
        shape.input = if same {
            shape.flat.clone()
        } else {
            names.claim(&format!("{stem}_in"))
        };
        if shape.holds {
            shape.held = names.claim(&format!("{stem}_count_handles"));
        }
        shape.write = names.claim(&format!("{stem}_write"));
        shape.check = names.claim(&format!("{stem}_check"));
        shape.get = names.claim(&format!("{stem}_{}", if list { "view" } else { "get" }));
        match &mut shape.kind {
            ShapeKind::Variant { cases, .. } => {
                for case in cases {
                    case.constant = names.constant(&format!("{stem}_{}", names::snake(&case.wit)));
                }
            }
            ShapeKind::Enum(labels) | ShapeKind::Flags(labels) => {
                for label in labels {
                    label.constant =
                        names.constant(&format!("{stem}_{}", names::snake(&label.wit)));
                }
            }
            _ => {}
        }
    }
}

/// Names of the accessors of all types that come out and are not plain.
fn name_accessors(shapes: &mut Shapes, names: &mut Names) {
    for index in 0..shapes.0.len() {
        let shape = shapes.get(index);
        if !shape.usage.comes_out || shape.plain {
            continue;
        }
        let has_accessor: Vec<bool> = match &shape.kind {
            ShapeKind::Record(members) => {
                let has = |form| shapes.is_slice(form) || shapes.is_open_option(form);
                members.iter().map(|member| has(member.form)).collect()
            }
            ShapeKind::Variant { cases, .. } => {
                cases.iter().map(|case| case.payload.is_some()).collect()
            }
            ShapeKind::List { element, .. } | ShapeKind::Array { element, .. } => {
                vec![shapes.is_slice(*element)]
            }
            _ => continue,
        };
        let Shape { stem, kind, at, .. } = &mut shapes.0[index];
        let mut name = |what: &str| names.claim(&format!("{stem}_{what}"));
        match kind {
            ShapeKind::Record(members) => {
                for (member, _) in members.iter_mut().zip(has_accessor).filter(|(_, has)| *has) {
                    member.access = name(&member.name);
                }
            }
            ShapeKind::Variant { cases, .. } => {
                for (case, _) in cases.iter_mut().zip(has_accessor).filter(|(_, has)| *has) {
                    case.access = name(&case.name);
                }
            }
            _ if has_accessor.contains(&true) => *at = name("at"),
            _ => {}
        }
    }
}

/// Names of the host, whose functions' parameters come out and whose results go in.
fn name_host<'a>(
    package: &'a Package,
    asked: Vec<Call<'a>>,
    names: &mut Names,
) -> Option<Host<'a>> {
    let host = package.host.as_ref()?;
    let stem = names::snake(&host.interface);
    let name = names.claim(&stem);
    let functions = asked.into_iter().map(|call| {
        let own = names::snake(&call.function.name);
        Asked {
            member: names::member(&call.function.name),
            serve: names.claim(&format!("{stem}_{own}_serve")),
            answer: names.claim(&format!("{stem}_{own}_answer")),
            fail: names.claim(&format!("{stem}_{own}_fail")),
            call,
        }
    });
    let functions = functions.collect();
    Some(Host {
        name,
        functions,
        serve: names.claim(&format!("{stem}_serve")),
        register: names.claim("client_set_host"),
    })
}

fn mark_asked(shapes: &mut Shapes, call: &Call<'_>) {
    let goes_in = Usage {
        goes_in: true,
        ..Usage::default()
    };
    let checked = Usage {
        comes_out: true,
        checked: true,
        ..Usage::default()
    };
    for parameter in &call.parameters {
        if let Passed::Value(form) = parameter.passed {
            mark(shapes, form, checked);
        }
    }
    if let Outcome::Value(form) = call.ok {
        mark(shapes, form, goes_in);
    }
    if let Some(form) = call.error {
        mark(shapes, form, goes_in);
    }
}

fn name_call(package: &Package, call: &mut Call<'_>, names: &mut Names) {
    let function = call.function;
    let own = names::snake(&function.name);
    let stem = match function.kind {
        FunctionKind::Free => own,
        FunctionKind::Constructor(id) => {
            format!("{}_new", names::snake(&package.resources[id.0].name))
        }
        FunctionKind::Method(id) | FunctionKind::Static(id) => {
            format!("{}_{own}", names::snake(&package.resources[id.0].name))
        }
    };
    call.method = names.constant(&format!("method_{stem}"));
    call.blocking = names.claim(&stem);
    call.prepare = names.claim(&format!("{stem}_prepare"));
    call.submit = names.claim(&format!("{stem}_submit"));
    call.read = names.claim(&format!("{stem}_read"));
    if matches!(call.ok, Outcome::Stream(_)) && call.error.is_some() {
        call.stream_error = names.claim(&format!("{stem}_stream_error"));
    }
    call.result = names.claim(&format!("{stem}_result"));
    for (parameter, field) in call.parameters.iter_mut().zip(&function.params) {
        if let Passed::Upstream { open, .. } = &mut parameter.passed {
            *open = names.claim(&format!("{stem}_{}_open", names::snake(&field.name)));
        }
    }
}

fn call<'a>(
    package: &'a Package,
    collector: &mut Collector<'a>,
    upstreams: &mut Vec<Upstream>,
    function: &'a Function,
) -> Result<Call<'a>, SourceError> {
    let position = &function.position;
    let mut parameters = Vec::new();
    for field in &function.params {
        let passed = match field.ty.kind {
            TypeKind::Own(id) => Passed::Handle {
                resource: id.0,
                own: true,
            },
            TypeKind::Borrow(id) => Passed::Handle {
                resource: id.0,
                own: false,
            },
            _ => match upstream::passed(package, collector, upstreams, function, &field.ty)? {
                Some(upstream) => upstream,
                None => Passed::Value(collector.form(&field.ty, position)?),
            },
        };
        parameters.push(Parameter {
            name: names::parameter(&field.name),
            docs: field.docs.clone(),
            passed,
            offset: field.offset,
        });
    }
    let ok = match &function.ok {
        None => Outcome::Nothing,
        Some(Type {
            kind: TypeKind::Own(id),
            ..
        }) => Outcome::Own(id.0),
        Some(Type {
            kind: TypeKind::Stream(element),
            ..
        }) => Outcome::Stream(collector.stream(element.as_deref(), false, position)?),
        Some(Type {
            kind: TypeKind::Future(value),
            ..
        }) => Outcome::Stream(collector.stream(value.as_deref(), true, position)?),
        Some(ty) => Outcome::Value(collector.form(ty, position)?),
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
        submit: String::new(),
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

/// `count: async func(pattern: string, dir: string) -> result<u64, search-error>`
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
            format!(
                "{}: {is_static}{is_async}func({params}){result}",
                function.name
            )
        }
    }
}

fn mark_call(shapes: &mut Shapes, call: &Call<'_>, streams: &[Stream]) {
    let goes_in = Usage {
        goes_in: true,
        ..Usage::default()
    };
    let comes_out = Usage {
        comes_out: true,
        ..Usage::default()
    };
    let checked = Usage {
        checked: true,
        ..comes_out
    };
    for parameter in &call.parameters {
        if let Passed::Value(form) = parameter.passed {
            mark(shapes, form, goes_in);
        }
    }
    match call.ok {
        Outcome::Value(form) => mark(shapes, form, checked),
        Outcome::Stream(index) => {
            if let Some(form) = streams[index].element {
                mark(shapes, form, comes_out);
            }
        }
        Outcome::Nothing | Outcome::Own(_) => {}
    }
    if let Some(form) = call.error {
        mark(shapes, form, checked);
    }
}

/// Notes a use of a form and of all that is in it.
fn mark(shapes: &mut Shapes, form: Form, usage: Usage) {
    if let Form::Held(index) = form
        && let Some(HeldStream {
            element: Some(element),
            ..
        }) = shapes.1[index].stream
    {
        let comes_out = Usage {
            comes_out: true,
            ..Usage::default()
        };
        return mark(shapes, element, comes_out);
    }
    let Form::Shape(index) = form else { return };
    let shape = &mut shapes.0[index];
    shape.usage.goes_in |= usage.goes_in;
    shape.usage.comes_out |= usage.comes_out;
    shape.usage.checked |= usage.checked;
    let inner: Vec<Form> = match &shape.kind {
        ShapeKind::Record(members) => members.iter().map(|member| member.form).collect(),
        ShapeKind::Variant { cases, .. } => cases.iter().filter_map(|case| case.payload).collect(),
        ShapeKind::Enum(_) | ShapeKind::Flags(_) => Vec::new(),
        ShapeKind::Option { value, .. } => vec![*value],
        ShapeKind::List { element, .. } | ShapeKind::Array { element, .. } => vec![*element],
    };
    for form in inner {
        mark(shapes, form, usage);
    }
}
