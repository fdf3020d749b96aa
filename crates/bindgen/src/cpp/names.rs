//! The names of a package in C++, and how its types are spelled.

use std::collections::BTreeSet;

use crate::model::{
    FunctionKind, Package, Type, TypeDef, TypeDefKind, TypeKind, contains_handle, contains_stream,
};

/// Words that cannot be a name: keywords of C++ up to C++23, lower-case macros of the headers that a
/// package includes, and the namespaces that generated code uses.
const RESERVED: &str = "
    alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char16_t
    char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval
    constexpr constinit continue decltype default delete do double dynamic_cast else enum errno
    explicit export extern false float for friend goto i386 if inline int linux long mutable
    namespace new noexcept not not_eq nullptr offsetof operator or or_eq private protected public
    register reinterpret_cast requires return short signed sizeof static static_assert static_cast
    std stderr stdin stdout struct switch template thalweg this thread_local throw true try typedef
    typeid typename union unix unsigned using va_arg va_copy va_end va_start virtual void volatile
    wchar_t while xor xor_eq";

/// Functions of the C library that a package's namespace would collide with.
const GLOBAL: &str = "
    abort abs accept access acct alarm bind calloc chdir clock close connect creat ctime daemon
    difftime div dup environ erand48 exit exp fork free getc getenv getline gets index jn kill link
    listen log malloc mktime nice open pause perror pipe poll popen pow printf putc puts qsort raise
    rand random read realloc recv remove rename rewind rindex rmdir round scanf select send setenv
    shutdown signal sin sleep socket sqrt stat strcat strcpy strlen sync system tan time times
    truncate umask uname unlink vfork wait write y0 y1";

/// Members of every client and resource.
const MEMBERS: &[&str] = &[
    "arm",
    "attach",
    "attach_as",
    "close",
    "dispatch",
    "fd",
    "handle",
    "open",
    "open_as",
    "release",
    "session",
    "set_host",
    "waiting",
];

/// Members of every service that a guest implements, and of its resources.
const GUEST_MEMBERS: &[&str] = &[
    "cancelled",
    "load",
    "package",
    "shared_from_this",
    "unload",
    "weak_from_this",
];

/// The parameter for the options of a call.
pub(super) const OPTIONS: &str = "run_options";

fn is_in(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|word| word == name)
}

/// `path-bytes` becomes `path_bytes`; a reserved word gets a `_`.
pub fn identifier(name: &str) -> String {
    let mut name = name.to_ascii_lowercase().replace('-', "_");
    if is_in(RESERVED, &name) {
        name.push('_');
    }
    name
}

/// The name of a parameter.
pub(super) fn parameter(name: &str) -> String {
    let name = identifier(name);
    match name.as_str() {
        OPTIONS | "session" => name + "_",
        _ => name,
    }
}

/// The name of a member of the class `class`, which also has the members `fixed`.
pub(super) fn member(name: &str, class: &str, fixed: &[&str]) -> String {
    let mut name = identifier(name);
    while fixed.contains(&name.as_str()) || name == class {
        name.push('_');
    }
    name
}

/// The identifiers of one scope.
#[derive(Default)]
pub(super) struct Scope(BTreeSet<String>);

impl Scope {
    /// `name`, with `_` appended until it is unique.
    pub(super) fn claim(&mut self, mut name: String) -> String {
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

/// The names of a package.
pub struct Names<'a> {
    /// The package.
    pub package: &'a Package,
    /// The prefix of the names in the C header.
    pub prefix: String,
    /// The namespace.
    pub namespace: String,
    /// The class of the client, or of the service.
    pub client: String,
    /// The types, in the order of the model.
    pub types: Vec<String>,
    /// The resources, in the order of the model.
    pub resources: Vec<String>,
    /// The structs of the methods in the namespace `methods`, in the order of the model.
    pub methods: Vec<String>,
    /// The member functions, in the order of the model.
    pub functions: Vec<String>,
    /// A guest has shares of the objects of its resources, and reads streams.
    is_guest: bool,
}

impl<'a> Names<'a> {
    /// Finds all names. `prefix` is that of the C header.
    pub fn new(package: &'a Package, prefix: &str) -> Self {
        Self::with(package, prefix, false)
    }

    /// The same for a guest, which has a class `service` instead of a client.
    pub(super) fn for_guest(package: &'a Package, prefix: &str) -> Self {
        Self::with(package, prefix, true)
    }

    fn with(package: &'a Package, prefix: &str, is_guest: bool) -> Self {
        let (client, fixed, host) = match is_guest {
            true => ("service", GUEST_MEMBERS, Some("host")),
            false => ("client", MEMBERS, None),
        };
        let mut namespace = identifier(&package.name);
        if is_in(GLOBAL, &namespace) {
            namespace.push('_');
        }
        let mut scope = Scope::default();
        let client = scope.claim(client.to_owned());
        // A variant has the members `value` and `get_if`, which cannot have the name of its class.
        let generated = ["methods", "imports", "package_tables", "guest_package"];
        for name in generated.into_iter().chain(["value", "get_if"]).chain(host) {
            scope.claim(name.to_owned());
        }
        let mut claim = |name: &String| scope.claim(identifier(name));
        let types = package.types.iter().map(|ty| claim(&ty.name)).collect();
        let resources: Vec<_> = package
            .resources
            .iter()
            .map(|one| claim(&one.name))
            .collect();
        let mut methods = Scope::default();
        let mut of_client = Scope::default();
        let mut of_resources: Vec<_> = resources.iter().map(|_| Scope::default()).collect();
        let mut stems = Vec::new();
        let mut functions = Vec::new();
        for function in &package.functions {
            let stem = match function.kind {
                FunctionKind::Free => identifier(&function.name),
                FunctionKind::Constructor(id) => format!("{}_new", resources[id.0]),
                FunctionKind::Method(id) | FunctionKind::Static(id) => {
                    format!("{}_{}", resources[id.0], identifier(&function.name))
                }
            };
            stems.push(methods.claim(stem));
            functions.push(match function.kind {
                FunctionKind::Free => of_client.claim(member(&function.name, &client, fixed)),
                FunctionKind::Constructor(id) => {
                    of_client.claim(member(&package.resources[id.0].name, &client, fixed))
                }
                FunctionKind::Static(id) => {
                    let name = format!("{}-{}", package.resources[id.0].name, function.name);
                    of_client.claim(member(&name, &client, fixed))
                }
                FunctionKind::Method(id) => {
                    of_resources[id.0].claim(member(&function.name, &resources[id.0], fixed))
                }
            });
        }
        Names {
            package,
            prefix: prefix.to_owned(),
            namespace,
            client,
            types,
            resources,
            methods: stems,
            functions,
            is_guest,
        }
    }

    /// `::search::match`
    pub fn qualified(&self, name: &str) -> String {
        format!("::{}::{name}", self.namespace)
    }

    /// A type in C++.
    pub fn ty(&self, ty: &Type) -> String {
        let one = |ty: &Type| self.ty(ty);
        let optional = |ty: &Option<Box<Type>>| match ty {
            Some(ty) => self.ty(ty),
            None => "thalweg::none".to_owned(),
        };
        match &ty.kind {
            TypeKind::Bool => "bool".to_owned(),
            TypeKind::U8 => "std::uint8_t".to_owned(),
            TypeKind::U16 => "std::uint16_t".to_owned(),
            TypeKind::U32 => "std::uint32_t".to_owned(),
            TypeKind::U64 => "std::uint64_t".to_owned(),
            TypeKind::S8 => "std::int8_t".to_owned(),
            TypeKind::S16 => "std::int16_t".to_owned(),
            TypeKind::S32 => "std::int32_t".to_owned(),
            TypeKind::S64 => "std::int64_t".to_owned(),
            TypeKind::F32 => "float".to_owned(),
            TypeKind::F64 => "double".to_owned(),
            TypeKind::Char => "char32_t".to_owned(),
            TypeKind::String => "thalweg::text".to_owned(),
            TypeKind::List(element) if self.is_byte(element) => "thalweg::bytes".to_owned(),
            // Each handle has one owner, so that a list of them cannot be a view.
            TypeKind::List(element) if self.has_handles(element) => {
                format!("std::vector<{}>", one(element))
            }
            TypeKind::List(element) => format!("thalweg::list<{}>", one(element)),
            TypeKind::Array(element, count) => format!("std::array<{}, {count}>", one(element)),
            TypeKind::Option(value) => format!("std::optional<{}>", one(value)),
            TypeKind::Result { ok, error } => {
                format!("thalweg::expected<{}, {}>", optional(ok), optional(error))
            }
            TypeKind::Tuple(types) => {
                let types: Vec<_> = types.iter().map(one).collect();
                format!("std::tuple<{}>", types.join(", "))
            }
            TypeKind::Named(id) => self.qualified(&self.types[id.0]),
            TypeKind::Own(id) | TypeKind::Borrow(id) => {
                let class = self.qualified(&self.resources[id.0]);
                match self.is_guest {
                    true => format!("std::shared_ptr<{class}>"),
                    false => class,
                }
            }
            TypeKind::Stream(element) if self.is_guest => {
                format!("thalweg::stream_reader<{}>", optional(element))
            }
            TypeKind::Future(value) if self.is_guest => {
                format!("thalweg::future_reader<{}>", optional(value))
            }
            TypeKind::Stream(element) => format!("thalweg::stream<{}>", optional(element)),
            TypeKind::Future(value) => format!("thalweg::future<{}>", optional(value)),
        }
    }

    fn is_byte(&self, ty: &Type) -> bool {
        crate::model::resolve_alias(&self.package.types, ty).kind == TypeKind::U8
    }

    /// A value of the type can contain handles, so that it cannot be copied.
    pub(super) fn has_handles(&self, ty: &Type) -> bool {
        contains_handle(&self.package.types, ty)
    }

    /// The same for a definition.
    pub(super) fn definition_has_handles(&self, definition: &TypeDef) -> bool {
        any_inside(definition, |ty| self.has_handles(ty))
    }

    /// A value of the definition can contain streams or futures.
    pub(super) fn definition_has_streams(&self, definition: &TypeDef) -> bool {
        any_inside(definition, |ty| contains_stream(&self.package.types, ty))
    }

    /// A type that is passed by value.
    pub(super) fn is_scalar(&self, ty: &Type) -> bool {
        use TypeKind::{Bool, Char, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
        let ty = crate::model::resolve_alias(&self.package.types, ty);
        match &ty.kind {
            Bool | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F32 | F64 | Char => true,
            TypeKind::Named(id) => match &self.package.types[id.0].kind {
                TypeDefKind::Enum(_) => true,
                TypeDefKind::Flags(_) => self.package.types[id.0].size <= 4,
                _ => false,
            },
            _ => false,
        }
    }
}

/// Whether `is` holds for a type that the definition uses itself.
fn any_inside(definition: &TypeDef, is: impl Fn(&Type) -> bool) -> bool {
    match &definition.kind {
        TypeDefKind::Record(fields) => fields.iter().any(|field| is(&field.ty)),
        TypeDefKind::Variant { cases, .. } => {
            let mut payloads = cases.iter().filter_map(|case| case.payload.as_ref());
            payloads.any(is)
        }
        TypeDefKind::Alias(ty) => is(ty),
        TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_word_gets_an_underscore() {
        assert_eq!(identifier("template"), "template_");
        assert_eq!(identifier("Std"), "std_");
        assert_eq!(identifier("path-bytes"), "path_bytes");
    }

    #[test]
    fn member_named_like_its_class_or_a_generic_member_gets_an_underscore() {
        assert_eq!(member("close", "counter", MEMBERS), "close_");
        assert_eq!(member("counter", "counter", MEMBERS), "counter_");
        assert_eq!(member("value", "counter", MEMBERS), "value");
    }

    #[test]
    fn parameter_named_like_the_options_gets_an_underscore() {
        assert_eq!(parameter("run-options"), "run_options_");
        assert_eq!(parameter("options"), "options");
    }
}
