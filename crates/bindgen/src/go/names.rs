//! The names of a package in Go.

use crate::model::{FunctionKind, TypeId};
use crate::plan::names::{Scope, contains};
use crate::plan::{Function, Kind, Plan, TypeIndex};

/// Words that cannot be names.
const KEYWORDS: &str = "\
break case chan const continue default defer else fallthrough for func go goto if import interface map
package range return select struct switch type var";

/// Names that every file has, which a parameter would hide.
const PREDECLARED: &str = "\
any bool byte comparable complex128 complex64 error float32 float64 int int16 int32 int64 int8 rune
string uint uint16 uint32 uint64 uint8 uintptr true false iota nil append cap clear close copy delete
imag len make max min new panic print println real recover";

/// What generated functions use.
const LOCALS: &str = "\
at call context ctx err errors guest isOk iter m records result self service to w wire";

/// Words that are written in one case.
const INITIALISMS: &str = "\
acl api ascii cpu css dns eof guid html http https id ip json lhs qps ram rhs rpc sla smtp sql ssh tcp
tls ttl udp ui uid uri url utf8 uuid vm xml xmpp xsrf xss";

/// An exported name.
pub fn exported(name: &str) -> String {
    name.split('-').map(word).collect()
}

/// A name that begins with a small letter.
pub fn unexported(name: &str) -> String {
    let (first, rest) = name.split_once('-').unwrap_or((name, ""));
    first.to_ascii_lowercase() + &exported(rest)
}

fn word(word: &str) -> String {
    let word = word.to_ascii_lowercase();
    if contains(&[INITIALISMS], &word) {
        return word.to_ascii_uppercase();
    }
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// All names of a package.
pub struct Names {
    /// The package.
    pub package: String,
    /// The interfaces of the resources, in the order of the model.
    pub resources: Vec<String>,
    /// The types of the plan that have definitions, in its order; empty for the others.
    pub types: Vec<String>,
    /// The aliases of the model; empty for other types.
    pub aliases: Vec<String>,
    /// The fields of records, the types of the cases of variants, and the constants of labels, for each
    /// type of the plan.
    pub members: Vec<Vec<String>>,
    /// What the names of functions for each type of the plan end with.
    pub stems: Vec<String>,
    /// The methods of the interfaces, in the order of the functions.
    pub methods: Vec<String>,
    /// What the names of functions for each function end with.
    pub functions: Vec<String>,
    /// The functions that call the host, in the order of the host imports.
    pub host_calls: Vec<String>,
}

impl Names {
    /// Finds the names.
    pub fn new(plan: &Plan<'_>) -> Self {
        let package = plan.package;
        let mut scope = Scope::default();
        for name in ["Serve", "Service"] {
            scope.claim(name);
        }
        let resources = package.resources.iter();
        let resources = resources.map(|resource| scope.claim(exported(&resource.name)));
        let resources: Vec<_> = resources.collect();
        let aliases: Vec<_> = package
            .types
            .iter()
            .enumerate()
            .map(|(id, ty)| {
                let is_alias = plan.get(plan.named[id]).id != Some(TypeId(id));
                if is_alias {
                    scope.claim(exported(&ty.name))
                } else {
                    String::new()
                }
            })
            .collect();
        let types: Vec<_> = plan
            .types
            .iter()
            .map(|ty| {
                let is_tuple = matches!(ty.kind, Kind::Record(_));
                if ty.id.is_some() || is_tuple {
                    scope.claim(exported(&ty.stem))
                } else {
                    String::new()
                }
            })
            .collect();
        let members = plan.types.iter().zip(&types).map(|(ty, name)| {
            let mut fields = Scope::default();
            if ty.usage.is_raised {
                fields.claim("Error"); // the method
            }
            let labels = ty.kind.labels().into_iter().enumerate();
            let labels = labels.map(|(number, (label, _))| match (&ty.kind, ty.id) {
                (Kind::Record(_), None) => format!("F{number}"),
                (Kind::Record(_), _) => fields.claim(exported(label)),
                (_, None) => String::new(),
                _ => scope.claim(format!("{name}{}", exported(label))),
            });
            labels.collect()
        });
        let members = members.collect();
        let host_calls = plan.functions.iter();
        let host_calls = host_calls.map(|import| scope.claim(exported(&import.function.name)));
        let host_calls = host_calls.collect();
        let mut stems = Scope::default();
        let stems = plan.types.iter().map(|ty| stems.claim(exported(&ty.stem)));
        let stems = stems.collect();
        let (methods, functions) = functions(plan, &resources);
        let mut name = package.name.replace('-', "").to_ascii_lowercase();
        if contains(&[KEYWORDS], &name) || name == "main" {
            name.push('_');
        }
        Names {
            package: name,
            resources,
            types,
            aliases,
            members,
            stems,
            methods,
            functions,
            host_calls,
        }
    }

    /// The parameters, without the resource of a method.
    pub fn parameters(&self, function: &Function<'_>) -> Vec<String> {
        let mut scope = Scope::default();
        let names = function.written().map(|(_, parameter)| {
            let name = unexported(parameter.name);
            let is_reserved = contains(&[KEYWORDS, PREDECLARED, LOCALS], &name);
            // The variables of the codec are a letter and a number, and its functions begin with a verb.
            let is_variable = name.starts_with(['i', 'n', 'p', 't', 'v'])
                && name.len() > 1
                && name[1..].chars().all(|one| one.is_ascii_digit());
            let verbs = [
                "put", "get", "check", "serve", "encode", "element", "read", "type",
            ];
            let is_function = verbs.into_iter().any(|verb| {
                let rest = name.strip_prefix(verb);
                rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
            });
            let is_taken = is_reserved || is_variable || is_function;
            scope.claim(if is_taken { format!("{name}_") } else { name })
        });
        names.collect()
    }

    /// The definition of a type.
    pub fn of_type(&self, ty: TypeIndex) -> &str {
        &self.types[ty.0]
    }
}

/// The names of the functions in their interfaces, and those that are unique in the package.
fn functions(plan: &Plan<'_>, resources: &[String]) -> (Vec<String>, Vec<String>) {
    let mut service = Scope::default();
    service.claim("Close");
    let mut objects = vec![Scope::default(); resources.len()];
    for object in &mut objects {
        object.claim("Drop");
    }
    let mut all = Scope::default();
    let names = plan.imports.iter().map(|function| {
        let name = exported(&function.function.name);
        let (method, unique) = match function.function.kind {
            FunctionKind::Free => (service.claim(name), None),
            FunctionKind::Constructor(id) => {
                (service.claim(format!("New{}", resources[id.0])), None)
            }
            FunctionKind::Static(id) => (service.claim(format!("{}{name}", resources[id.0])), None),
            FunctionKind::Method(id) => {
                let method = objects[id.0].claim(name);
                let unique = format!("{}{method}", resources[id.0]);
                (method, Some(unique))
            }
        };
        let unique = all.claim(unique.unwrap_or_else(|| method.clone()));
        (method, unique)
    });
    names.unzip()
}
