//! `thalweg describe`: prints the interface of a library as WIT.
//!
//! The table of a library contains the names of its functions, parameters, fields, cases and
//! resources, and the structure of all types. It contains no documentation and no names of types:
//! two types with the same structure are one, and its name is made up from the place where it is
//! used first.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use thalweg_bindgen::{SourceError, parse_text, wit_name};
use thalweg_capi::abi::{
    TW_METHOD_ASYNC, TW_METHOD_BRIEF, TW_METHOD_CAN_BLOCK, TW_METHOD_CBOR, TW_METHOD_IDEMPOTENT,
    TW_METHOD_INLINE, TW_METHOD_NOTICES,
};

use crate::description::{Field, Kind, Type, Unreadable};
use crate::files;
use crate::library::{self, Function, Library};
use crate::output::Output;

/// The arguments of `thalweg describe`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The library of a service
    library: PathBuf,

    /// Write the WIT and the policy file into this folder, instead of printing the WIT
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Why an interface cannot be described.
#[derive(Debug)]
pub enum Error {
    /// The library cannot be opened.
    Library(library::Error),
    /// A function in the table has an unknown form.
    Function(String),
    /// A type in the table has an unknown form.
    Type(Unreadable),
    /// The WIT that was made is not one that `thalweg gen` accepts.
    Source(SourceError),
    /// The WIT that was made does not have the layout of the library.
    Layout { library: u64, wit: u64 },
    /// A file cannot be written.
    File(PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Library(error) => error.fmt(f),
            Error::Function(name) => write!(
                f,
                "the library has the function `{name}`, which this version of the command cannot describe"
            ),
            Error::Type(error) => error.fmt(f),
            Error::Source(error) => write!(f, "the interface has no form in WIT: {error}"),
            Error::Layout { library, wit } => write!(
                f,
                "the interface has no form in WIT: its layout would be {wit:016x}, and the library's is {library:016x}"
            ),
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

impl From<library::Error> for Error {
    fn from(error: library::Error) -> Self {
        Error::Library(error)
    }
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Error::Type(error)
    }
}

/// Prints the WIT of a library, or writes it with its policy file.
///
/// # Errors
/// The library cannot be opened, its interface has no form in WIT, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<Output, Error> {
    let library = Library::open(&arguments.library)?;
    let Description { wit, policy } = describe(&Interface {
        package: library.package,
        version: library.version,
        core: library.core,
        methods: &library.methods,
        imports: &library.imports,
    })?;
    let (_, name) = library.package.split_once(':').unwrap_or_default();
    let file = |ending: &str| PathBuf::from(format!("{name}.{ending}"));
    let package = parse_text(&file("wit"), &wit, &policy).map_err(Error::Source)?;
    if package.layout != library.table.layout {
        return Err(Error::Layout {
            library: library.table.layout,
            wit: package.layout,
        });
    }
    let Some(folder) = &arguments.out else {
        return Ok(Output::done(wit));
    };
    let paths = [file("wit"), file("thalweg.toml")].map(|file| folder.join(file));
    let [wit_path, policy_path] = &paths;
    let files = [(wit_path.as_path(), &wit), (policy_path.as_path(), &policy)];
    files::write(&files).map_err(|(path, error)| Error::File(path, error))?;
    let wrote = paths.map(|path| format!("wrote {}\n", path.display()));
    Ok(Output::done(wrote.concat()))
}

/// The facts that a table contains.
#[derive(Clone, Copy, Debug)]
struct Interface<'a> {
    package: &'a str,
    version: &'a str,
    core: &'a str,
    methods: &'a [Function<'a>],
    imports: &'a [Function<'a>],
}

/// The two files.
#[derive(Debug)]
struct Description {
    wit: String,
    policy: String,
}

fn describe(interface: &Interface<'_>) -> Result<Description, Error> {
    let imports = parse_all(interface.imports)?;
    let methods = parse_all(interface.methods)?;
    let mut writer = Writer::new(methods.iter().chain(&imports));
    let host = imports.first().map(|import| import.interface);
    if let Some(host) = host {
        writer.functions(&imports);
        writer.interface(host);
    }
    writer.is_host = false;
    let own = methods.first().map_or("", |method| method.interface);
    writer.resources_without_functions(&methods);
    writer.functions(&methods);
    writer.uses(host);
    writer.interface(own);

    let Interface {
        package,
        version,
        core,
        ..
    } = interface;
    let mut wit = format!(
        "// {package}@{version}, described from a library that was built with Thalweg {core}.\n\
         // A library does not contain the names of its types, so they are made up here.\n\
         package {package}@{version};\n\n{}world library {{\n",
        writer.out
    );
    if let Some(host) = host {
        let _ = writeln!(wit, "    import {};", wit_name(host));
    }
    let _ = writeln!(wit, "    export {};\n}}", wit_name(own));
    Ok(Description {
        wit,
        policy: policy(own, &methods),
    })
}

/// The form of a function's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Free,
    Constructor,
    Method,
    Static,
    Destructor,
}

/// A function with its types.
#[derive(Debug)]
struct Signature<'a> {
    interface: &'a str,
    role: Role,
    /// Empty for a free function.
    resource: &'a str,
    /// Empty for a constructor and a destructor.
    name: &'a str,
    /// Without `self`.
    params: Vec<Field<'a>>,
    ok: Type<'a>,
    error: Option<Type<'a>>,
    function: Function<'a>,
}

fn parse_all<'a>(functions: &'a [Function<'a>]) -> Result<Vec<Signature<'a>>, Error> {
    functions.iter().map(Signature::parse).collect()
}

impl<'a> Signature<'a> {
    fn parse(function: &Function<'a>) -> Result<Self, Error> {
        let unknown = || Error::Function(function.name.to_owned());
        let (interface, rest) = function.name.split_once('.').ok_or_else(unknown)?;
        let (role, resource, name) = match rest.strip_prefix('[') {
            None => (Role::Free, "", rest),
            Some(rest) => match rest.split_once(']').ok_or_else(unknown)? {
                ("constructor", resource) => (Role::Constructor, resource, ""),
                ("destructor", resource) => (Role::Destructor, resource, ""),
                (word @ ("method" | "static"), rest) => {
                    let (resource, name) = rest.split_once('.').ok_or_else(unknown)?;
                    let is_method = word == "method";
                    let role = if is_method {
                        Role::Method
                    } else {
                        Role::Static
                    };
                    (role, resource, name)
                }
                _ => return Err(unknown()),
            },
        };
        let Kind::Record(mut params) = Type::parse(function.params())?.kind else {
            return Err(unknown());
        };
        if role == Role::Method && !params.is_empty() {
            params.remove(0);
        }
        Ok(Self {
            interface,
            role,
            resource,
            name,
            params,
            ok: Type::parse(function.ok())?,
            error: function.error().map(Type::parse).transpose()?,
            function: *function,
        })
    }

    /// All types.
    fn types(&self) -> impl Iterator<Item = &Type<'a>> {
        let params = self.params.iter().map(|param| &param.ty);
        params.chain([&self.ok]).chain(&self.error)
    }

    /// The part of types' names that comes from the function.
    fn stem(&self) -> String {
        [self.resource, self.name]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join("-")
    }

    fn is_async(&self) -> bool {
        self.function.has_flag(TW_METHOD_ASYNC)
    }
}

/// Labels that are not the name of a type by themselves: they say too little, or are common names in
/// generated code.
const VAGUE: &[&str] = &[
    "box", "call", "client", "default", "element", "err", "error", "item", "none", "ok", "self",
    "some", "value", "vec",
];

/// Writes interfaces.
struct Writer<'a> {
    /// The interfaces that are complete.
    out: String,
    /// The items of the interface that is being written, and whether each is a function.
    items: Vec<(bool, String)>,
    /// The names of the types that are defined, by description.
    names: HashMap<&'a str, String>,
    /// The descriptions of the types that the interface of the host defines.
    of_host: HashSet<&'a str>,
    /// The names of the host's types that the library's own interface uses.
    used: BTreeSet<String>,
    /// The names in both interfaces.
    taken: HashSet<String>,
    /// The interface of the host is being written.
    is_host: bool,
}

impl<'a> Writer<'a> {
    fn new<'s>(all: impl Iterator<Item = &'s Signature<'a>>) -> Self
    where
        'a: 's,
    {
        let mut taken = HashSet::new();
        for signature in all {
            for name in [signature.interface, signature.resource, signature.name] {
                taken.insert(name.to_ascii_lowercase());
            }
        }
        Self {
            out: String::new(),
            items: Vec::new(),
            names: HashMap::new(),
            of_host: HashSet::new(),
            used: BTreeSet::new(),
            taken,
            is_host: true,
        }
    }

    /// Completes an interface.
    fn interface(&mut self, name: &str) {
        let _ = writeln!(self.out, "interface {} {{", wit_name(name));
        let mut before = None;
        for (is_function, item) in std::mem::take(&mut self.items) {
            if before.is_some_and(|before| !(before && is_function)) {
                self.out.push('\n');
            }
            before = Some(is_function);
            for line in item.lines() {
                let _ = writeln!(self.out, "    {line}");
            }
        }
        self.out.push_str("}\n\n");
    }

    /// Writes the functions, each after the types that it uses. All functions of a resource are in
    /// its block.
    fn functions(&mut self, all: &[Signature<'a>]) {
        let of_one = |one: &Signature<'_>, next: &Signature<'_>| {
            !one.resource.is_empty() && one.resource == next.resource
        };
        for group in all.chunk_by(of_one) {
            for signature in group {
                self.define_types(signature);
            }
            let lines = |this: &Self, indent: &str| -> String {
                let declared = group
                    .iter()
                    .filter(|signature| signature.role != Role::Destructor);
                declared
                    .map(|signature| format!("{indent}{}\n", this.declaration(signature)))
                    .collect()
            };
            let item = match group[0].resource {
                "" => lines(self, ""),
                // The destructor is in the policy file.
                _ if group.iter().all(|one| one.role == Role::Destructor) => continue,
                resource => {
                    let functions = lines(self, "    ");
                    format!("resource {} {{\n{functions}}}", wit_name(resource))
                }
            };
            self.items.push((group[0].resource.is_empty(), item));
        }
    }

    /// Declares the resources that are only used as values.
    fn resources_without_functions(&mut self, all: &[Signature<'a>]) {
        let mut used = BTreeSet::new();
        for ty in all.iter().flat_map(|signature| signature.types()) {
            resources(ty, &mut used);
        }
        let declares = |signature: &Signature<'_>, name: &str| {
            signature.resource == name && signature.role != Role::Destructor
        };
        for name in used {
            if !all.iter().any(|signature| declares(signature, name)) {
                self.taken.insert(name.to_ascii_lowercase());
                self.items
                    .push((false, format!("resource {};", wit_name(name))));
            }
        }
    }

    /// Writes which types of the host's interface are used.
    fn uses(&mut self, host: Option<&str>) {
        if let Some(host) = host
            && !self.used.is_empty()
        {
            let names: Vec<_> = self.used.iter().map(|name| wit_name(name)).collect();
            let line = format!("use {}.{{{}}};", wit_name(host), names.join(", "));
            self.items.insert(0, (false, line));
        }
    }

    fn define_types(&mut self, signature: &Signature<'a>) {
        let stem = signature.stem();
        for param in &signature.params {
            self.define(&param.ty, param.name, &stem);
        }
        let is_stream = matches!(signature.ok.kind, Kind::Stream(_) | Kind::Future(_));
        let label = if is_stream { "element" } else { "result" };
        self.define(&signature.ok, label, &stem);
        if let Some(error) = &signature.error {
            self.define(error, "error", &stem);
        }
    }

    /// Defines the records, variants, enums and flags in a type that are not defined yet. `label`
    /// and `parent` name the place.
    fn define(&mut self, ty: &Type<'a>, label: &str, parent: &str) {
        match &ty.kind {
            Kind::List(item)
            | Kind::Array(item, _)
            | Kind::Option(item, _)
            | Kind::Stream(item)
            | Kind::Future(item) => return self.define(item, label, parent),
            Kind::Result(sides, _) => {
                return sides
                    .iter()
                    .for_each(|side| self.define(side, label, parent));
            }
            Kind::Tuple(fields) => {
                return fields
                    .iter()
                    .for_each(|field| self.define(&field.ty, label, parent));
            }
            Kind::Record(_) | Kind::Variant(..) | Kind::Enum(_) | Kind::Flags(_) => {}
            _ => return,
        }
        if let Some(name) = self.names.get(ty.text) {
            if !self.is_host && self.of_host.contains(ty.text) {
                self.used.insert(name.clone());
            }
            return;
        }
        let name = self.new_name(label, parent);
        let (word, lines) = match &ty.kind {
            Kind::Record(fields) => {
                for field in fields {
                    self.define(&field.ty, field.name, &name);
                }
                let lines = fields
                    .iter()
                    .map(|field| format!("{}: {}", wit_name(field.name), self.of(&field.ty)));
                ("record", lines.collect::<Vec<_>>())
            }
            Kind::Variant(cases, _) => {
                for case in cases {
                    if let Some(payload) = &case.payload {
                        self.define(payload, case.name, &name);
                    }
                }
                let lines = cases.iter().map(|case| {
                    let payload = case.payload.as_ref();
                    let payload = payload.map_or(String::new(), |ty| format!("({})", self.of(ty)));
                    format!("{}{payload}", wit_name(case.name))
                });
                ("variant", lines.collect())
            }
            Kind::Enum(labels) => ("enum", labels.iter().map(|label| wit_name(label)).collect()),
            Kind::Flags(labels) => (
                "flags",
                labels.iter().map(|label| wit_name(label)).collect(),
            ),
            _ => return,
        };
        let lines: String = lines.iter().map(|line| format!("    {line},\n")).collect();
        let item = format!("{word} {} {{\n{lines}}}", wit_name(&name));
        self.items.push((false, item));
        if self.is_host {
            self.of_host.insert(ty.text);
        }
        self.names.insert(ty.text, name);
    }

    /// A name for a type at this place.
    fn new_name(&mut self, label: &str, parent: &str) -> String {
        let full = format!("{parent}-{label}");
        let is_vague = VAGUE.contains(&label) || wit_name(label) != label;
        let plain = (!is_vague).then(|| label.to_owned());
        let numbered = (2..).map(|number: u32| format!("{full}{number}"));
        let name = plain
            .into_iter()
            .chain([full.clone()])
            .chain(numbered)
            .find(|name| !self.taken.contains(&name.to_ascii_lowercase()))
            .expect("there are more numbers than names");
        self.taken.insert(name.to_ascii_lowercase());
        name
    }

    /// A function in WIT syntax.
    fn declaration(&self, signature: &Signature<'a>) -> String {
        let params: Vec<_> = signature
            .params
            .iter()
            .map(|param| format!("{}: {}", wit_name(param.name), self.of(&param.ty)))
            .collect();
        let params = params.join(", ");
        let result = match (&signature.ok.kind, &signature.error) {
            (Kind::Unit, None) => String::new(),
            (_, None) => format!(" -> {}", self.of(&signature.ok)),
            (_, Some(error)) => format!(" -> {}", self.result(&signature.ok, error)),
        };
        let word = match (signature.role, signature.is_async()) {
            (Role::Constructor, _) if signature.error.is_none() => {
                return format!("constructor({params});");
            }
            (Role::Constructor, _) => return format!("constructor({params}){result};"),
            (Role::Static, false) => "static func",
            (Role::Static, true) => "static async func",
            (_, false) => "func",
            (_, true) => "async func",
        };
        format!("{}: {word}({params}){result};", wit_name(signature.name))
    }

    /// A type in WIT syntax.
    fn of(&self, ty: &Type<'a>) -> String {
        let one = |word: &str, item: &Type<'a>| match item.kind {
            Kind::Unit => word.to_owned(),
            _ => format!("{word}<{}>", self.of(item)),
        };
        match &ty.kind {
            Kind::List(item) => one("list", item),
            Kind::Array(item, count) => format!("list<{}, {count}>", self.of(item)),
            Kind::Option(item, _) => one("option", item),
            Kind::Stream(item) => one("stream", item),
            Kind::Future(item) => one("future", item),
            Kind::Result([ok, error], _) => self.result(ok, error),
            Kind::Tuple(fields) => {
                let types: Vec<_> = fields.iter().map(|field| self.of(&field.ty)).collect();
                format!("tuple<{}>", types.join(", "))
            }
            Kind::Own(name) => wit_name(name),
            Kind::Borrow(name) => format!("borrow<{}>", wit_name(name)),
            Kind::Record(_) | Kind::Variant(..) | Kind::Enum(_) | Kind::Flags(_) => {
                let name = self.names.get(ty.text);
                name.map_or(String::new(), |name| wit_name(name))
            }
            // These have the same text in WIT.
            Kind::Unit
            | Kind::Bool
            | Kind::Char
            | Kind::Text
            | Kind::Unsigned
            | Kind::Signed
            | Kind::Float => ty.text.to_owned(),
        }
    }

    fn result(&self, ok: &Type<'a>, error: &Type<'a>) -> String {
        match (&ok.kind, &error.kind) {
            (Kind::Unit, Kind::Unit) => "result".to_owned(),
            (_, Kind::Unit) => format!("result<{}>", self.of(ok)),
            _ => format!("result<{}, {}>", self.of(ok), self.of(error)),
        }
    }
}

/// Collects the names of the resources in a type.
fn resources<'a>(ty: &Type<'a>, names: &mut BTreeSet<&'a str>) {
    match &ty.kind {
        Kind::Own(name) | Kind::Borrow(name) => {
            names.insert(*name);
        }
        Kind::List(item) | Kind::Array(item, _) | Kind::Option(item, _) => resources(item, names),
        Kind::Result(sides, _) => sides.iter().for_each(|side| resources(side, names)),
        Kind::Tuple(fields) | Kind::Record(fields) => {
            fields.iter().for_each(|field| resources(&field.ty, names));
        }
        Kind::Variant(cases, _) => {
            let payloads = cases.iter().filter_map(|case| case.payload.as_ref());
            payloads.for_each(|payload| resources(payload, names));
        }
        _ => {}
    }
}

/// The options of the policy file that a table contains.
fn policy(interface: &str, methods: &[Signature<'_>]) -> String {
    let mut out = String::from(
        "# The options that a library contains. Capacities, limits, times and overflow policies of streams are not\n\
         # among them.\n",
    );
    let mut table = |key: &[&str], lines: &[String]| {
        if !lines.is_empty() {
            let _ = write!(out, "\n[{}]\n{}\n", key.join("."), lines.join("\n"));
        }
    };
    let can_block = |method: &Signature<'_>| method.function.has_flag(TW_METHOD_CAN_BLOCK);
    if methods.iter().any(can_block) {
        table(&[interface], &["overflow = \"block\"".to_owned()]);
    }
    let resources: BTreeSet<_> = methods.iter().map(|method| method.resource).collect();
    for resource in resources.into_iter().filter(|name| !name.is_empty()) {
        let own = methods.iter().filter(|method| method.resource == resource);
        let options = own.filter_map(|method| match method.role {
            Role::Constructor if method.is_async() => Some("constructor = \"async\"".to_owned()),
            Role::Destructor => Some("destructor = \"async\"".to_owned()),
            _ => None,
        });
        table(&[interface, resource], &options.collect::<Vec<_>>());
    }
    for method in methods {
        let lines: Vec<_> = [
            (TW_METHOD_INLINE, "inline = true"),
            (TW_METHOD_BRIEF, "brief = true"),
            (TW_METHOD_IDEMPOTENT, "idempotent = true"),
            (TW_METHOD_CBOR, "format = \"cbor\""),
            (
                TW_METHOD_NOTICES,
                "notice_interval = \"1s\"   # the library has its own interval",
            ),
        ]
        .into_iter()
        .filter(|(flag, _)| method.function.has_flag(*flag))
        .map(|(_, line)| line.to_owned())
        .collect();
        match method.role {
            Role::Free => table(&[interface, method.name], &lines),
            Role::Method | Role::Static => {
                table(&[interface, method.resource, method.name], &lines);
            }
            Role::Constructor | Role::Destructor => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Description, Function, Interface, describe};
    use std::path::Path;
    use thalweg_bindgen::hash::Describer;
    use thalweg_bindgen::model::{self, Package};
    use thalweg_bindgen::{LANGUAGES, parse, parse_text};
    use thalweg_capi::abi::{
        TW_METHOD_ASYNC, TW_METHOD_BRIEF, TW_METHOD_CAN_BLOCK, TW_METHOD_CBOR,
        TW_METHOD_IDEMPOTENT, TW_METHOD_INLINE,
    };

    /// The packages of the repository.
    const PACKAGES: &[&str] = &[
        "conformance/codegen/versions/newer.wit",
        "conformance/codegen/versions/older.wit",
        "conformance/wit",
        "crates/bench/wit",
        "crates/bindgen/tests/from_code/all.wit",
        "crates/bindgen/tests/from_code/greeter.wit",
        "crates/bindgen/tests/from_code/hall.wit",
        "crates/bindgen/tests/from_code/press.wit",
        "examples/echo/wit",
        "examples/feed/wit",
        "examples/hello/wit",
        "examples/recipes/wit",
        "examples/search/wit",
    ];

    /// The facts about a package that the table of its library contains.
    struct Table {
        package: String,
        version: String,
        /// Name, description and flags.
        methods: Vec<(String, String, u32)>,
        imports: Vec<(String, String, u32)>,
    }

    impl Table {
        fn of(package: &Package) -> Self {
            let texts = Describer {
                types: &package.types,
                resources: &package.resources,
            };
            let row = |function: &model::Function| {
                let bit = |is: bool, bit: u32| if is { bit } else { 0 };
                let options = &function.options;
                let flags = bit(function.is_async, TW_METHOD_ASYNC)
                    | bit(options.is_inline, TW_METHOD_INLINE)
                    | bit(options.is_brief, TW_METHOD_BRIEF)
                    | bit(options.is_idempotent, TW_METHOD_IDEMPOTENT)
                    | bit(options.is_cbor, TW_METHOD_CBOR)
                    | bit(package.limits.block_when_full, TW_METHOD_CAN_BLOCK);
                let description = texts.describe_function(function);
                (function.full_name.clone(), description, flags)
            };
            let host = package.host.iter().flat_map(|host| &host.functions);
            Table {
                package: format!("{}:{}", package.namespace, package.name),
                version: package.version.clone(),
                methods: package.functions.iter().map(row).collect(),
                imports: host.map(row).collect(),
            }
        }

        fn describe(&self) -> Description {
            let described = describe(&Interface {
                package: &self.package,
                version: &self.version,
                core: "0.1.0",
                methods: &functions(&self.methods),
                imports: &functions(&self.imports),
            });
            described.unwrap_or_else(|error| panic!("{}: {error}", self.package))
        }
    }

    fn functions(rows: &[(String, String, u32)]) -> Vec<Function<'_>> {
        rows.iter()
            .map(|(name, description, flags)| Function {
                name,
                description,
                flags: *flags,
            })
            .collect()
    }

    fn package(path: &str) -> Package {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        parse(&root.join(path)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn description_of_each_package_has_its_layout_and_its_functions() {
        for path in PACKAGES {
            let package = package(path);
            let table = Table::of(&package);
            let Description { wit, policy } = table.describe();
            let described = parse_text(Path::new("described.wit"), &wit, &policy)
                .unwrap_or_else(|error| panic!("{path}: {error}\n{wit}\n{policy}"));
            let again = Table::of(&described);
            for (before, after) in [
                (&table.methods, &again.methods),
                (&table.imports, &again.imports),
            ] {
                for (before, after) in before.iter().zip(after) {
                    assert_eq!(before, after, "{path}\n{wit}");
                }
                assert_eq!(before.len(), after.len(), "{path}");
            }
            assert_eq!(described.layout, package.layout, "{path}\n{wit}");
            assert_eq!(described.host_layout(), package.host_layout(), "{path}");
            for language in LANGUAGES {
                let emitted = (language.emit)(&described);
                assert!(emitted.is_ok(), "{path}: {:?}\n{wit}", emitted.err());
            }
        }
    }

    /// The description of a package whose interface `i` has these lines.
    fn described(lines: &str) -> String {
        let text =
            format!("package a:b@0.1.0;\ninterface i {{\n{lines}\n}}\nworld w {{ export i; }}\n");
        let package = parse_text(Path::new("b.wit"), &text, "");
        let package = package.unwrap_or_else(|error| panic!("{error}"));
        let wit = Table::of(&package).describe().wit;
        let (_, own) = wit.split_once("interface i {\n").unwrap();
        own.split_once("\n}\n").unwrap().0.to_owned()
    }

    #[test]
    fn types_are_named_after_their_place_and_each_structure_once() {
        let found = described(
            "record point { x: s32, corner: tuple<other> }
             record other { %type: u8 }
             type same = point;
             f: func(p: point, value: option<same>) -> result<stream<other>, choice>;
             variant choice { a, b(other), c(third) }
             enum third { x, y }
             f-value: func(p: list<third>, q: fourth) -> third;
             flags fourth { one }",
        );
        let expected = "    record corner {
        %type: u8,
    }

    record p {
        x: s32,
        corner: tuple<corner>,
    }

    enum c {
        x,
        y,
    }

    variant f-error {
        a,
        b(corner),
        c(c),
    }

    f: func(p: p, value: option<p>) -> result<stream<corner>, f-error>;

    flags q {
        one,
    }

    f-value: func(p: list<c>, q: q) -> c;";
        assert_eq!(found, expected);
    }

    #[test]
    fn name_that_is_taken_is_not_used() {
        let found = described(
            "record r { x: u8 }
             record s { y: u8 }
             f: func(%list: r, g: s) -> r;
             g: func();",
        );
        assert!(found.contains("record f-list {"), "{found}");
        assert!(found.contains("record f-g {"), "{found}");
    }

    #[test]
    fn resource_without_functions_is_declared() {
        let found = described(
            "resource token;
             make: func(%own: borrow<token>) -> list<token>;",
        );
        assert_eq!(
            found,
            "    resource token;\n\n    make: func(%own: borrow<token>) -> list<token>;"
        );
    }
}
