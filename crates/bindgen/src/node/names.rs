//! The names of a package in JavaScript and TypeScript.
//!
//! Classes, constants and functions share the scope of the module. WIT has no names with an
//! underscore, so that no name is `__proto__`.

use crate::plan::names::{Case, Scope, Style};
use crate::plan::{Function, Plan, TypeIndex};
use std::collections::BTreeMap;

/// The words that cannot be the name of a parameter.
const KEYWORDS: &str = "\
arguments await break case catch class const continue debugger default delete do else enum eval
export extends false finally for function if implements import in instanceof interface let new null
package private protected public return static super switch this throw true try typeof undefined var
void while with yield";

/// Members that every object inherits, so that an object without the field has one. An object with
/// `then` is taken for a promise.
const INHERITED: &str = "\
constructor hasOwnProperty isPrototypeOf propertyIsEnumerable then toLocaleString toString valueOf";

/// The names that generated modules use.
const MODULE: &str = "\
Array AsyncIterable BigInt64Array BigUint64Array CallOptions Client Column Float32Array Float64Array
Int16Array Int32Array Int8Array Iterable NoValue NoticeOptions PACKAGE Package Promise PromiseLike
Resource ServiceError Stream Uint16Array Uint32Array Uint8Array call readFuture";

/// A field, a flag, or a function of a host.
pub(super) const FIELD: Style = Style {
    case: Case::Camel,
    reserved: &[INHERITED],
};

/// A method of a class, which has the members of `Client` and `Resource`.
const METHOD: Style = Style {
    case: Case::Camel,
    reserved: &[INHERITED, "close closed"],
};

/// A parameter.
const PARAMETER: Style = Style {
    case: Case::Camel,
    reserved: &[KEYWORDS],
};

/// All names of a package.
#[derive(Default)]
pub(super) struct Names {
    /// The classes of the client and of the resources, and the types, in the order of the model.
    pub client: String,
    pub resources: Vec<String>,
    pub types: Vec<String>,
    /// The interface of the host, if there are host imports.
    pub host: String,
    /// The classes of errors, by their payload.
    pub exceptions: BTreeMap<TypeIndex, String>,
    /// The types of the columns of streams, by the element.
    pub columns: BTreeMap<TypeIndex, String>,
    /// The functions that put and get a value, and the constants with the names of its cases, in the
    /// order of the plan's types.
    pub put: Vec<String>,
    pub get: Vec<String>,
    pub labels: Vec<String>,
    /// The constants that describe the elements of streams, and those of parameters.
    pub elements: BTreeMap<Option<TypeIndex>, String>,
    pub sends: BTreeMap<Option<TypeIndex>, String>,
    /// The constants that describe the functions, and the methods, in the order of the model.
    pub constants: Vec<String>,
    pub methods: Vec<String>,
    module: Scope,
}

impl Names {
    pub fn new(plan: &Plan<'_>) -> Self {
        let mut names = Names::default();
        for name in MODULE.split_whitespace() {
            names.module.claim(name);
        }
        names.claim_types(plan);
        names.claim_code(plan);
        names.claim_functions(plan);
        names
    }

    /// Claims the names of classes and types.
    fn claim_types(&mut self, plan: &Plan<'_>) {
        let package = plan.package;
        let mut claim = |name: &str| self.module.claim(Case::Pascal.of(name));
        self.client = claim(&package.name);
        self.types = package.types.iter().map(|ty| claim(&ty.name)).collect();
        let resources = package.resources.iter();
        self.resources = resources.map(|resource| claim(&resource.name)).collect();
        if let Some(host) = &package.host {
            self.host = claim(&host.interface);
        }
        for (index, ty) in plan
            .types
            .iter()
            .enumerate()
            .filter(|(_, ty)| ty.usage.is_raised)
        {
            if let Some(id) = ty.id {
                let class = self.module.claim(format!("{}Exception", self.types[id.0]));
                self.exceptions.insert(TypeIndex(index), class);
            }
        }
        for stream in plan.streams.iter().filter(|stream| !stream.is_future) {
            let Some(element) = stream.element else {
                continue;
            };
            if !self.columns.contains_key(&element) && !plan.columns(element).is_empty() {
                let name = Case::Pascal.of(plan.stem_of_element(stream));
                self.columns
                    .insert(element, self.module.claim(format!("{name}Columns")));
            }
        }
    }

    /// Claims the names of the functions and constants for values.
    fn claim_code(&mut self, plan: &Plan<'_>) {
        let module = &mut self.module;
        for ty in &plan.types {
            let name = Case::Pascal.of(&ty.stem);
            self.put.push(module.claim(format!("put{name}")));
            self.get.push(module.claim(format!("get{name}")));
            let name = Case::Constant.of(&ty.stem);
            self.labels.push(module.claim(format!("{name}_NAMES")));
        }
        for (streams, prefix, names) in [
            (&plan.streams, "", &mut self.elements),
            (&plan.upstreams, "SEND_", &mut self.sends),
        ] {
            for stream in streams {
                let name = Case::Constant.of(plan.stem_of_element(stream));
                let claim = || module.claim(format!("{prefix}{name}"));
                names.entry(stream.element).or_insert_with(claim);
            }
        }
    }

    fn claim_functions(&mut self, plan: &Plan<'_>) {
        let resources = &plan.package.resources;
        let mut client = Scope::default();
        let mut scopes = vec![Scope::default(); resources.len()];
        for function in &plan.functions {
            let name = plan.name_in_class(function.function);
            let (scope, constant) = match function.resource() {
                Some(id) => (
                    &mut scopes[id.0],
                    format!("{}-{name}", resources[id.0].name),
                ),
                None => (&mut client, name.clone()),
            };
            self.methods.push(scope.claim(METHOD.of(&name)));
            let constant = Case::Constant.of(&constant);
            self.constants.push(self.module.claim(constant));
        }
    }

    /// The names in a method: its parameters, except `self`, and those of the options, the writer and
    /// the position of the arguments.
    pub fn locals(&self, function: &Function<'_>) -> (Vec<String>, [String; 3]) {
        let mut scope = self.module.clone();
        let names = function.written();
        let names = names.map(|(_, parameter)| scope.claim(PARAMETER.of(parameter.name)));
        let names = names.collect();
        (names, ["options", "w", "at"].map(|name| scope.claim(name)))
    }
}
