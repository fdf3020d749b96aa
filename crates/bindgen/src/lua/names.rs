//! The names of a package in Lua.
//!
//! Functions for values are in the tables `put`, `get` and `check`, so that a module has few local
//! variables: LuaJIT allows 200.

use crate::plan::names::{Case, Scope, Style};
use crate::plan::{Function, Plan};

const KEYWORDS: &str = "\
and break do else elseif end false for function goto if in local nil not or repeat return then true
until while";

/// The names that the code inside of methods uses.
const MODULE: &str = "\
self call new_table null package put get check names classes elements sends methods w m at values options";

/// A field, a flag, a type or a function of a host.
pub(super) const NAME: Style = Style {
    case: Case::Snake,
    reserved: &[KEYWORDS],
};

/// A method of the client or of a resource.
const METHOD: Style = Style {
    case: Case::Snake,
    reserved: &[KEYWORDS, "close"],
};

/// All names of a package that depend on each other.
pub(super) struct Names {
    /// The keys of functions in the table `methods`, in the order of the model.
    pub keys: Vec<String>,
    /// The methods.
    pub methods: Vec<String>,
}

impl Names {
    pub fn new(plan: &Plan<'_>) -> Self {
        let resources = &plan.package.resources;
        let mut scopes = vec![Scope::default(); resources.len() + 1];
        let mut all = Scope::default();
        let (mut keys, mut methods) = (Vec::new(), Vec::new());
        for function in &plan.functions {
            let name = plan.name_in_class(function.function);
            let (scope, key) = match function.resource() {
                Some(id) => (id.0, format!("{}-{name}", resources[id.0].name)),
                None => (resources.len(), name.clone()),
            };
            methods.push(scopes[scope].claim(METHOD.of(&name)));
            keys.push(all.claim(NAME.of(&key)));
        }
        Names { keys, methods }
    }
}

/// The names of the parameters that a caller writes, and that of the options.
pub(super) fn locals(function: &Function<'_>) -> (Vec<String>, String) {
    let mut scope = Scope::default();
    for name in MODULE.split_whitespace().filter(|name| *name != "options") {
        scope.claim(name);
    }
    let names = function.written();
    let names = names.map(|(_, parameter)| scope.claim(NAME.of(parameter.name)));
    let names = names.collect();
    (names, scope.claim("options"))
}
