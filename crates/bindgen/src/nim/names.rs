//! The names of a package in Nim.
//!
//! Nim compares names without regard to underscores and, except for the first letter, to case. A name
//! must not end with an underscore, so that a name which is taken gets a number: `close2`.

use crate::plan::names::{Case, contains};
use crate::plan::{Function, Handle, Kind, Plan};
use std::collections::BTreeSet;

/// Words that are names only between backticks.
const KEYWORDS: &str = "\
addr and as asm bind block break case cast concept const continue converter defer discard distinct
div do elif else end enum except export finally for from func if import in include interface is isnot
iterator let macro method mixin mod nil not notin object of or out proc ptr raise ref return shl shr
static template try tuple type using var when while xor yield";

/// Types that generated modules use.
const TYPES: &str = "\
CallOptions Client ClientHandle Future FutureValue FutureWriter HostCall Message Natural Nothing Option
Outcome Resource Result Rune ServiceError Stream StreamWriter ThalwegError Writer";

/// Procs of the generic package for clients and resources.
const METHODS: &str = "attach close handle isOpen open owned session setHost";

/// Types that only the modules of guests use.
const GUEST_TYPES: &str = "\
AnyWriter Call EncodeError FutureReader GuestPackage GuestPolicy Incoming RecordWriter Service
StreamReader Subscribers";

/// Procs of the generic package for a running call, whose other procs are the host imports.
const CALL_METHODS: &str = "cancelled deadline id isCancelled";

/// What the body of a function uses.
const LOCALS: &str = "\
args callOptions client default isSome len newSeq result root self uint16 uint32 uint8 unsafeGet";

/// The names that are taken in one namespace.
#[derive(Clone, Default)]
pub struct Scope(BTreeSet<String>);

impl Scope {
    fn of(reserved: &str) -> Self {
        let mut scope = Self::default();
        for word in reserved.split_whitespace() {
            scope.claim(word.to_owned());
        }
        scope
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(&key(name))
    }

    /// Takes `name`, with a number if it is taken.
    fn claim(&mut self, name: String) -> String {
        let mut claimed = name.clone();
        for number in 2.. {
            if self.0.insert(key(&claimed)) {
                break;
            }
            claimed = format!("{name}{number}");
        }
        claimed
    }
}

/// What Nim compares.
fn key(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{first}{}", rest.to_ascii_lowercase().replace('_', ""))
}

/// The name as it is written in code.
pub fn quoted(name: &str) -> String {
    match contains(&[KEYWORDS], &name.to_ascii_lowercase()) {
        true => format!("`{name}`"),
        false => name.to_owned(),
    }
}

/// All names of a package.
pub struct Names {
    /// The name of the module, without `.nim`.
    pub module: String,
    /// The type of the client.
    pub client: String,
    /// The types of the resources, in the order of the model.
    pub resources: Vec<String>,
    /// The types of the model, in its order.
    pub types: Vec<String>,
    /// The enums of the cases of variants, and of flags, in the order of the model; or empty.
    pub kinds: Vec<String>,
    /// The objects of the host's functions: those that return values, and those that return futures.
    pub hosts: [String; 2],
    /// The fields, cases or labels of each type of the plan.
    pub members: Vec<Vec<String>>,
    /// What the names of procs for each type of the plan end with.
    pub stems: Vec<String>,
    /// The procs of the functions, in the order of the model, without backticks.
    pub functions: Vec<String>,
    /// The functions of the host.
    pub imports: Vec<String>,
    /// The parameters of each type of the plan that is generic: `[Timer]`. In a guest, a value with
    /// resources has the guest's own types for them.
    pub generics: Vec<String>,
}

impl Names {
    /// Finds the names.
    pub fn new(plan: &Plan<'_>) -> Self {
        Self::with(plan, Scope::of(TYPES), functions(plan))
    }

    /// Finds the names for a guest, whose procs have no second form with futures.
    pub fn for_guest(plan: &Plan<'_>) -> Self {
        let types = Scope::of(&format!("{TYPES} {GUEST_TYPES}"));
        let mut names = Self::with(plan, types, served(plan));
        let mut procs = Scope::of(CALL_METHODS);
        let imports = plan.imports.iter();
        let imports = imports.map(|import| procs.claim(Case::Camel.of(&import.function.name)));
        names.imports = imports.collect();
        let mut inside: Vec<BTreeSet<usize>> = Vec::new();
        for (ty, generics) in plan.types.iter().zip(&mut names.generics) {
            let mut resources = match ty.kind {
                Kind::Handle(Handle::Own(id) | Handle::Borrow(id)) => BTreeSet::from([id.0]),
                _ => BTreeSet::new(),
            };
            for part in ty.kind.parts() {
                resources.extend(&inside[part.0]);
            }
            if !resources.is_empty() {
                let list: Vec<_> = resources.iter().map(|id| &*names.resources[*id]).collect();
                *generics = format!("[{}]", list.join(", "));
            }
            inside.push(resources);
        }
        names
    }

    fn with(plan: &Plan<'_>, mut module: Scope, functions: Vec<String>) -> Self {
        let package = plan.package;
        let mut claim = |name: &str| module.claim(Case::Pascal.of(name));
        let client = claim(&format!("{}-client", package.name));
        let resources = package.resources.iter();
        let resources = resources.map(|resource| claim(&resource.name)).collect();
        let types: Vec<_> = package.types.iter().map(|ty| claim(&ty.name)).collect();
        let host = package.host.as_ref();
        let hosts = ["", "-async"].map(|ending| {
            host.map_or(String::new(), |host| {
                claim(&(host.interface.clone() + ending))
            })
        });
        let mut kinds = vec![String::new(); types.len()];
        for ty in &plan.types {
            let ending = match ty.kind {
                Kind::Variant { .. } => "Kind",
                Kind::Flags(_) => "Flag",
                _ => continue,
            };
            if let Some(id) = ty.id {
                kinds[id.0] = module.claim(format!("{}{ending}", types[id.0]));
            }
        }
        let members = plan.types.iter().map(|ty| {
            let is_variant = matches!(ty.kind, Kind::Variant { .. });
            let mut scope = Scope::of(if is_variant { "kind" } else { "" });
            let labels = ty
                .kind
                .labels()
                .into_iter()
                .filter(|(name, _)| !name.is_empty());
            let labels = labels.map(|(name, _)| scope.claim(Case::Camel.of(name)));
            labels.map(|name| quoted(&name)).collect()
        });
        let mut scope = Scope::default();
        let stems = plan.types.iter();
        let stems = stems.map(|ty| scope.claim(Case::Pascal.of(&ty.stem)));
        let mut scope = Scope::default();
        let imports = plan.imports.iter();
        let imports =
            imports.map(|import| quoted(&scope.claim(Case::Camel.of(&import.function.name))));
        Names {
            module: Case::Snake.of(&package.name),
            client,
            resources,
            types,
            kinds,
            hosts,
            members: members.collect(),
            stems: stems.collect(),
            functions,
            imports: imports.collect(),
            generics: vec![String::new(); plan.types.len()],
        }
    }

    /// The parameters that a caller writes, as they are written in code.
    pub fn parameters(&self, function: &Function<'_>) -> Vec<String> {
        let mut scope = Scope::of(LOCALS);
        let names = function.written().map(|(_, parameter)| {
            let name = Case::Camel.of(parameter.name);
            // The walker's variables are a letter and a number.
            let is_variable = name.starts_with(['i', 'n', 'p', 't', 'v'])
                && name[1..].chars().all(|one| one.is_ascii_digit())
                && name.len() > 1;
            let name = if is_variable {
                format!("{name}Value")
            } else {
                name
            };
            quoted(&scope.claim(name))
        });
        names.collect()
    }

    /// The proc that creates the stream for a parameter.
    pub fn writer(&self, function: usize, parameter: &str) -> String {
        let name = &self.functions[function];
        let (first, rest) = name.split_at(1);
        let parameter = Case::Pascal.of(parameter);
        format!("new{}{rest}{parameter}", first.to_ascii_uppercase())
    }
}

/// The words of the name of a function.
fn words(plan: &Plan<'_>, function: &Function<'_>) -> String {
    let name = plan.name_in_class(function.function);
    match function.function.kind {
        crate::model::FunctionKind::Constructor(_) => format!("new-{name}"),
        _ => name,
    }
}

/// The names of the procs of a guest.
fn served(plan: &Plan<'_>) -> Vec<String> {
    let mut service = Scope::default();
    let mut scopes = vec![Scope::default(); plan.package.resources.len()];
    let all = plan.functions.iter().map(|function| {
        let scope = match function.resource() {
            Some(id) => &mut scopes[id.0],
            None => &mut service,
        };
        scope.claim(Case::Camel.of(&words(plan, function)))
    });
    all.collect()
}

/// The names of the functions. Each function also has a name for its future.
fn functions(plan: &Plan<'_>) -> Vec<String> {
    let scope = Scope::of(METHODS);
    let mut client = scope.clone();
    let mut scopes = vec![scope; plan.package.resources.len()];
    let all = plan.functions.iter().map(|function| {
        let scope = match function.resource() {
            Some(id) => &mut scopes[id.0],
            None => &mut client,
        };
        let name = Case::Camel.of(&words(plan, function));
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let mut all = std::iter::once(name.clone()).chain(numbered);
        let is_free = |name: &String| !scope.has(name) && !scope.has(&format!("{name}Async"));
        let name = all
            .find(is_free)
            .expect("there are more numbers than names");
        scope.claim(format!("{name}Async"));
        scope.claim(name)
    });
    all.collect()
}
