//! Decisions that are made before emitting: names, exception types, types with views, and
//! unsupported constructs.

use std::collections::BTreeSet;

use super::client::Face;
use super::names::{self, CLASS};
use crate::SourceError;
use crate::model::{self, Function, FunctionKind, Package, Type, TypeDef, TypeDefKind, TypeId};
use crate::plan::names::Scope;
use crate::plan::{self, Unsupported};

/// A package with its names in Python.
pub(super) struct Plan<'a> {
    pub(super) package: &'a Package,
    /// The types and functions.
    pub(super) whole: plan::Plan<'a>,
    /// The folder and the name of the Python package: `thalweg_search`.
    pub(super) folder: String,
    /// The names of each type.
    pub(super) types: Vec<TypeNames>,
    /// The classes of each resource: sync, async.
    pub(super) resources: Vec<(String, String)>,
    /// The classes of the client: sync, async.
    pub(super) client: (String, String),
    /// The protocols of the host, if there are host imports: sync, async.
    pub(super) host: Option<(String, String)>,
    /// The constant in `_methods.py` for each function.
    pub(super) methods: Vec<String>,
}

/// The names of a named type.
pub(super) struct TypeNames {
    /// The class, the alias, or the union of a variant's classes.
    pub(super) class: String,
    /// The classes of the cases of a variant.
    pub(super) cases: Vec<String>,
    /// The constant in `_layout.py`.
    pub(super) constant: String,
    /// The view class, if the type is a stream element.
    pub(super) view: Option<String>,
    /// The exception class, if the type is an error payload. For a variant it is the base class of
    /// the cases, `class`.
    pub(super) exception: Option<String>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(package: &'a Package) -> Result<Self, SourceError> {
        let whole = plan::Plan::new(package);
        whole.refuse(&[Unsupported::BorrowInValue])?;
        let mut classes = Scope::default();
        let mut constants = Scope::default();
        let mut types = Vec::new();
        for (def, index) in package.types.iter().zip(&whole.named) {
            let usage = whole.get(*index).usage;
            // The names of an alias are those of its target.
            let is_raised = usage.is_raised && !matches!(def.kind, TypeDefKind::Alias(_));
            let is_streamed = usage.is_streamed && matches!(def.kind, TypeDefKind::Record(_));
            let class = classes.claim(CLASS.of(&def.name));
            let cases = match &def.kind {
                TypeDefKind::Variant { cases, .. } => cases
                    .iter()
                    .map(|case| classes.claim(format!("{class}{}", CLASS.of(&case.name))))
                    .collect(),
                _ => Vec::new(),
            };
            let is_variant = matches!(def.kind, TypeDefKind::Variant { .. });
            let exception = is_raised.then(|| {
                if is_variant {
                    class.clone()
                } else {
                    classes.claim(format!("{class}Exception"))
                }
            });
            let view = is_streamed.then(|| classes.claim(format!("{class}View")));
            let constant = constants.claim(names::CONSTANT.of(&def.name));
            types.push(TypeNames {
                class,
                cases,
                constant,
                view,
                exception,
            });
        }
        let mut pair = |name: &str| {
            let class = CLASS.of(name);
            (
                classes.claim(class.clone()),
                classes.claim(format!("Async{class}")),
            )
        };
        let resources = package
            .resources
            .iter()
            .map(|resource| pair(&resource.name))
            .collect();
        let client = pair(&package.interface);
        let host = package.host.as_ref().map(|host| pair(&host.interface));
        let mut constants = Scope::default();
        constants.claim("PACKAGE");
        let methods = package
            .functions
            .iter()
            .map(|function| constants.claim(names::CONSTANT.of(&method_stem(package, function))))
            .collect();
        Ok(Self {
            package,
            whole,
            folder: format!("{}_{}", package.namespace, package.name).replace('-', "_"),
            types,
            resources,
            client,
            host,
            methods,
        })
    }

    /// `thalweg:search@0.1.0`.
    pub(super) fn id(&self) -> String {
        let Package {
            namespace,
            name,
            version,
            ..
        } = self.package;
        format!("{namespace}:{name}@{version}")
    }

    /// The definition and the names of `id`.
    pub(super) fn type_of(&self, id: TypeId) -> (&'a TypeDef, &TypeNames) {
        (&self.package.types[id.0], &self.types[id.0])
    }

    /// The type, with aliases resolved.
    pub(super) fn resolve<'t>(&self, ty: &'t Type) -> &'t Type
    where
        'a: 't,
    {
        model::resolve_alias(&self.package.types, ty)
    }

    pub(super) fn has_types(&self) -> bool {
        !self.types.is_empty()
    }

    pub(super) fn has_views(&self) -> bool {
        self.types.iter().any(|planned| planned.view.is_some())
    }

    /// The classes of `client.py` or `aio.py`.
    pub(super) fn class_names(&self, face: Face) -> Vec<String> {
        let all = self
            .resources
            .iter()
            .chain(&self.host)
            .chain([&self.client]);
        all.map(|(sync, aio)| if face == Face::Sync { sync } else { aio })
            .cloned()
            .collect()
    }

    /// The names that `types.py` defines.
    pub(super) fn type_names(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for planned in &self.types {
            names.insert(planned.class.clone());
            names.extend(planned.cases.iter().cloned());
            names.extend(planned.exception.clone());
        }
        names.into_iter().collect()
    }

    /// The names that `views.py` defines.
    pub(super) fn view_names(&self) -> Vec<String> {
        self.types
            .iter()
            .filter_map(|planned| planned.view.clone())
            .collect()
    }
}

/// `query-progress` of a method, `count` of a free function.
fn method_stem(package: &Package, function: &Function) -> String {
    match function.kind {
        FunctionKind::Free | FunctionKind::Constructor(_) => function.name.clone(),
        FunctionKind::Method(resource) | FunctionKind::Static(resource) => {
            format!("{}-{}", package.resources[resource.0].name, function.name)
        }
    }
}
