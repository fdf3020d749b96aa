//! The package of a guest, from a description that is known only at run time.

use std::collections::BTreeMap;
use std::sync::Mutex;

use thalweg_queue::no_preempt::lock;
use thalweg_wire::describe::Type;
use thalweg_wire::prepared::PreparedType;
use thalweg_wire::{Malformed, Shape};

use crate::code::{Code, Failure};
use crate::package::{Method, MethodOptions, Overflow, Package, QueueLimits, StreamOptions};

/// A package as a guest describes it.
#[derive(Clone, Debug)]
pub struct PackageDescription<'a> {
    /// The WIT name: `thalweg:search`.
    pub name: &'a str,
    /// The version: `0.1.0`.
    pub version: &'a str,
    /// The methods, in the order of their numbers.
    pub methods: Vec<FunctionDescription<'a>>,
    /// The host imports, in the order of their numbers.
    pub imports: Vec<FunctionDescription<'a>>,
    /// Limits for the calls and bytes that wait for an instance.
    pub limits: QueueLimits,
}

/// A method or a host import as a guest describes it.
#[derive(Clone, Debug)]
pub struct FunctionDescription<'a> {
    /// The WIT name: `search.[method]query.progress`.
    pub name: &'a str,
    /// The texts of the layouts, as in [`Method::description`].
    pub types: &'a str,
    /// `async func`.
    pub is_async: bool,
    /// Options from the policy file.
    pub options: MethodOptions,
    /// Options of the stream that the method returns.
    pub stream: StreamOptions,
}

/// The package of a guest. It exists for ever. Equal descriptions have the same package, so opening
/// a guest again takes no further memory.
#[derive(Debug)]
pub struct GuestPackage {
    package: Package,
    methods: Vec<MethodTypes>,
    imports: Vec<MethodTypes>,
}

/// The types of a method.
#[derive(Debug)]
pub(crate) struct MethodTypes {
    params: PreparedType<'static>,
    ok: PreparedType<'static>,
    /// `None`: the function does not return a `result`.
    error: Option<PreparedType<'static>>,
    /// The elements of the streams and futures among the parameters.
    streamed_params: Vec<PreparedType<'static>>,
    /// The elements of the stream or future that it returns.
    element: Option<PreparedType<'static>>,
    returns_future: bool,
    is_async: bool,
}

/// The packages by the text of their descriptions.
static PACKAGES: Mutex<BTreeMap<String, &'static GuestPackage>> = Mutex::new(BTreeMap::new());

impl GuestPackage {
    /// The package with this description.
    ///
    /// ```
    /// use thalweg_port::{
    ///     FunctionDescription, GuestPackage, MethodOptions, PackageDescription, QueueLimits, StreamOptions,
    /// };
    ///
    /// let package = GuestPackage::of(&PackageDescription {
    ///     name: "example:echo",
    ///     version: "0.1.0",
    ///     methods: vec![FunctionDescription {
    ///         name: "echo.echo",
    ///         types: "record{text:string}\nstring\n\n",
    ///         is_async: false,
    ///         options: MethodOptions::NONE,
    ///         stream: StreamOptions::DEFAULT,
    ///     }],
    ///     imports: vec![],
    ///     limits: QueueLimits::DEFAULT,
    /// })?;
    /// assert_eq!(package.package().methods[0].name, "echo.echo");
    /// # Ok::<(), thalweg_port::Failure>(())
    /// ```
    ///
    /// # Errors
    /// `argument`: the description is malformed, or asks for something that guests do not have:
    /// `inline` methods, or streams that are conflated by key. The message names the function.
    pub fn of(description: &PackageDescription<'_>) -> Result<&'static Self, Failure> {
        // The text contains everything that is described.
        let key = format!("{description:?}");
        let mut packages = lock(&PACKAGES);
        if let Some(package) = packages.get(&key) {
            return Ok(package);
        }
        let package: &Self = Box::leak(Box::new(Self::new(description)?));
        packages.insert(key, package);
        Ok(package)
    }

    fn new(description: &PackageDescription<'_>) -> Result<Self, Failure> {
        let PackageDescription { name, version, .. } = *description;
        if name.is_empty() || version.is_empty() {
            return Err(wrong("the package has no name or no version"));
        }
        // Nothing is leaked before everything is checked.
        for function in description.methods.iter().chain(&description.imports) {
            check(function)?;
        }
        if let Some(import) = description.imports.iter().find(|import| has_handle(import)) {
            return Err(wrong(format!(
                "the description of {:?}: a guest's imports have no resources and no streams",
                import.name
            )));
        }
        let methods = functions(&description.methods);
        let imports = functions(&description.imports);
        Ok(Self {
            package: Package {
                name: leak(name),
                version: leak(version),
                layout: layout_hash(methods.iter().chain(imports)),
                methods,
                imports,
                limits: description.limits,
            },
            methods: methods.iter().map(MethodTypes::of).collect(),
            imports: imports.iter().map(MethodTypes::of).collect(),
        })
    }

    /// The package, as the rest of the core sees it.
    pub fn package(&'static self) -> &'static Package {
        &self.package
    }

    /// How a later version of a guest differs from this package, for the programs that use it. `None`:
    /// their descriptions are equal.
    pub fn difference(&'static self, later: &'static Self) -> Option<String> {
        if std::ptr::eq(self, later) {
            return None;
        }
        let (ours, theirs) = (&self.package, &later.package);
        if (ours.name, ours.version) != (theirs.name, theirs.version) {
            let both = [ours, theirs].map(|one| format!("{}@{}", one.name, one.version));
            return Some(format!("it is {}, not {}", both[1], both[0]));
        }
        let functions = |one: &Package| one.methods.iter().chain(one.imports);
        let differs = |(ours, theirs): &(&Method, &Method)| {
            let types = |one: &Method| (one.name, one.description);
            types(ours) != types(theirs)
        };
        if let Some((ours, _)) = functions(ours).zip(functions(theirs)).find(differs) {
            return Some(format!("{} has another place or other types", ours.name));
        }
        Some(match functions(ours).count() == functions(theirs).count() {
            true => "its policies are others".to_owned(),
            false => "it has more or fewer functions".to_owned(),
        })
    }

    pub(crate) fn types(&'static self, method: u32) -> &'static MethodTypes {
        // The submission has checked the number.
        &self.methods[method as usize]
    }

    pub(crate) fn import_types(&'static self, import: u32) -> Option<&'static MethodTypes> {
        self.imports.get(import as usize)
    }
}

impl MethodTypes {
    fn of(method: &Method) -> Self {
        let [params, ok, error, element] = lines(method.description);
        let parse = |text| Type::parse(text).expect("`check` has parsed it");
        let message = |text| PreparedType::new(parse(text));
        Self {
            params: message(params),
            ok: message(ok),
            error: (!error.is_empty()).then(|| message(error)),
            element: (!element.is_empty()).then(|| message(element)),
            returns_future: ok.starts_with("future<"),
            is_async: method.is_async,
            streamed_params: streamed(params).map(message).collect(),
        }
    }

    /// The elements of the stream or future that the method returns, if it returns one.
    pub(crate) fn element(&self) -> Option<&PreparedType<'static>> {
        self.element.as_ref()
    }

    /// Whether the method is an `async func`.
    pub(crate) fn is_async(&self) -> bool {
        self.is_async
    }

    /// Whether the method returns a future.
    pub(crate) fn returns_future(&self) -> bool {
        self.returns_future
    }

    /// The type of the error, if the function returns a `result` with one.
    pub(crate) fn error(&self) -> Option<&PreparedType<'static>> {
        self.error.as_ref()
    }

    /// The elements of the streams and futures among the parameters.
    pub(crate) fn streamed_params(&self) -> &[PreparedType<'static>] {
        &self.streamed_params
    }

    pub(crate) fn check_params(&self, message: &[u8]) -> Result<(), Malformed> {
        self.params.check(message)
    }

    /// Checks an answer. The code is `Ok` or `Error`. Returns whether it can have handles.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub(crate) fn check_answer(&self, code: Code, message: &[u8]) -> Result<bool, String> {
        let (what, ty) = match code {
            Code::Error => ("error", self.error.as_ref()),
            _ => ("result", Some(&self.ok)),
        };
        let ty = ty.ok_or("it is an error, and the function has none")?;
        match ty.check(message) {
            Ok(()) => Ok(ty.has_handle()),
            Err(why) => Err(format!("the {what} is malformed: {why}")),
        }
    }
}

/// The four types of a function. A missing line is empty.
fn lines(types: &str) -> [&str; 4] {
    let mut lines = types.split('\n');
    [(); 4].map(|()| lines.next().unwrap_or(""))
}

/// The element types of the streams and futures in a type.
fn streamed(ty: &str) -> impl Iterator<Item = &str> {
    let starts = ["stream<", "future<"].map(|word| ty.match_indices(word));
    let starts = starts.into_iter().flatten();
    starts.map(|(at, word)| {
        let rest = &ty[at + word.len()..];
        let mut depth = 0;
        let is_end = |c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth < 0
        };
        &rest[..rest.find(is_end).unwrap_or(rest.len())]
    })
}

fn has_handle(function: &FunctionDescription<'_>) -> bool {
    let is_type_with_handle =
        |text: &str| Type::parse(text).is_ok_and(|ty| PreparedType::new(ty).has_handle());
    function.types.split('\n').any(is_type_with_handle)
}

fn wrong(why: impl Into<String>) -> Failure {
    Code::Argument.because(why)
}

/// Checks one function of a description.
fn check(function: &FunctionDescription<'_>) -> Result<(), Failure> {
    let FunctionDescription { name, types, .. } = *function;
    let refuse = |why: &str| Err(wrong(format!("the description of {name:?}: {why}")));
    if name.is_empty() {
        return Err(wrong("a function of the description has no name"));
    }
    let [params, ok, error, element] = lines(types);
    if types.split('\n').count() != 4 {
        return refuse("its types are not four lines");
    }
    let parts = [
        ("parameters", params),
        ("result", ok),
        ("error", error),
        ("element", element),
    ];
    for (what, text) in parts {
        let is_optional = matches!(what, "error" | "element");
        if (!is_optional || !text.is_empty()) && Type::parse(text).is_err() {
            return refuse(&format!("its {what} are not a type: {text:?}"));
        }
    }
    if !params.starts_with("record{") {
        return refuse("its parameters are not a record");
    }
    let has_handle = |element| {
        let prepared = Type::parse(element).map(PreparedType::new);
        prepared.is_ok_and(|element| element.has_handle())
    };
    if has_handle(element) || streamed(params).any(has_handle) {
        return refuse("the elements of its stream have handles");
    }
    let streamed = ["stream<", "future<"]
        .iter()
        .find_map(|word| ok.strip_prefix(word));
    let streamed = streamed.and_then(|element| element.strip_suffix('>'));
    if streamed.unwrap_or("") != element {
        return refuse("its element is not that of its result");
    }
    if function.options.is_inline {
        return refuse("a guest has no inline methods; use `brief`");
    }
    let StreamOptions {
        overflow,
        capacity,
        max_record_size,
        ..
    } = function.stream;
    if matches!(overflow, Overflow::Conflate(_)) {
        return refuse("a guest has no streams that are conflated by key");
    }
    if capacity == 0 || !(64 << 10..=512 << 20).contains(&max_record_size) {
        return refuse("the capacity or the record size of its stream is out of range");
    }
    Ok(())
}

fn leak(text: &str) -> &'static str {
    text.to_owned().leak()
}

fn functions(described: &[FunctionDescription<'_>]) -> &'static [Method] {
    let function = |one: &FunctionDescription<'_>| {
        let method = Method::new(leak(one.name), leak(one.types)).with_options(one.options);
        let method = match method.element {
            0 => method,
            _ => method.with_stream(one.stream),
        };
        match one.is_async {
            true => method.asynchronous(),
            false => method,
        }
    };
    described.iter().map(function).collect::<Vec<_>>().leak()
}

/// The hash of all methods and host imports, as in generated code.
fn layout_hash<'a>(functions: impl Iterator<Item = &'a Method>) -> u64 {
    let line = |method: &Method| {
        let Method {
            name,
            params,
            ok,
            error,
            element,
            ..
        } = method;
        format!("{name} {params} {ok} {error} {element}")
    };
    Shape::hash_of(&functions.map(line).collect::<Vec<_>>().join("\n"))
}
