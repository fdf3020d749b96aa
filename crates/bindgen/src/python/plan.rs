//! Decisions that are made before emitting: names, exception types, types with views, and
//! unsupported constructs.

use std::collections::BTreeSet;

use super::client::Face;
use super::names::{self, Names};
use crate::SourceError;
use crate::model::{
    Case, Function, FunctionKind, Package, Position, Type, TypeDef, TypeDefKind, TypeId, TypeKind,
};

/// A package with its names in Python.
pub(super) struct Plan<'a> {
    pub(super) package: &'a Package,
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
        for def in &package.types {
            check_def(def)?;
        }
        let asked = package.host.iter().flat_map(|host| &host.functions);
        for function in package.functions.iter().chain(asked) {
            check_function(function)?;
        }
        let (raised, streamed) = uses(package);
        let mut classes = Names::default();
        let mut constants = Names::default();
        let mut types = Vec::new();
        for (place, def) in package.types.iter().enumerate() {
            let class = classes.claim(names::class(&def.name));
            let cases = match &def.kind {
                TypeDefKind::Variant { cases, .. } => cases
                    .iter()
                    .map(|case| classes.claim(format!("{class}{}", names::class(&case.name))))
                    .collect(),
                _ => Vec::new(),
            };
            let is_variant = matches!(def.kind, TypeDefKind::Variant { .. });
            let exception = raised.contains(&place).then(|| {
                if is_variant {
                    class.clone()
                } else {
                    classes.claim(format!("{class}Exception"))
                }
            });
            let view = streamed
                .contains(&place)
                .then(|| classes.claim(format!("{class}View")));
            let constant = constants.claim(names::constant(&def.name));
            types.push(TypeNames {
                class,
                cases,
                constant,
                view,
                exception,
            });
        }
        let mut pair = |name: &str| {
            let class = names::class(name);
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
        let mut constants = Names::default();
        constants.claim("PACKAGE".into());
        let methods = package
            .functions
            .iter()
            .map(|function| constants.claim(names::constant(&method_stem(package, function))))
            .collect();
        Ok(Self {
            package,
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
        resolve(self.package, ty)
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

fn resolve<'a>(package: &'a Package, ty: &'a Type) -> &'a Type {
    match &ty.kind {
        TypeKind::Named(id) => match &package.types[id.0].kind {
            TypeDefKind::Alias(target) => resolve(package, target),
            _ => ty,
        },
        _ => ty,
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

/// The types that are error payloads, and the records that are stream elements.
fn uses(package: &Package) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut raised, mut streamed) = (BTreeSet::new(), BTreeSet::new());
    let asked = package.host.iter().flat_map(|host| &host.functions);
    for function in package.functions.iter().chain(asked) {
        if let Some(Some(error)) = &function.error
            && let TypeKind::Named(id) = resolve(package, error).kind
        {
            raised.insert(id.0);
        }
        if let Some(Type {
            kind: TypeKind::Stream(Some(element)),
            ..
        }) = &function.ok
            && let TypeKind::Named(id) = resolve(package, element).kind
            && let TypeDefKind::Record(_) = package.types[id.0].kind
        {
            streamed.insert(id.0);
        }
    }
    (raised, streamed)
}

fn refused(position: &Position, construct: &str, reason: &str) -> SourceError {
    SourceError {
        position: position.clone(),
        construct: construct.to_owned(),
        reason: reason.to_owned(),
    }
}

fn check_function(function: &Function) -> Result<(), SourceError> {
    let at = &function.position;
    for param in &function.params {
        match &param.ty.kind {
            TypeKind::Own(_) | TypeKind::Borrow(_) => {}
            TypeKind::Stream(element) | TypeKind::Future(element) => {
                if let Some(element) = element {
                    check_value(element, at)?;
                }
            }
            _ => check_value(&param.ty, at)?,
        }
    }
    match function.ok.as_ref().map(|ok| &ok.kind) {
        Some(TypeKind::Own(_)) => {}
        Some(TypeKind::Stream(Some(element)) | TypeKind::Future(Some(element))) => {
            check_value(element, at)?;
        }
        Some(TypeKind::Future(None) | TypeKind::Stream(None)) => {}
        _ => {
            if let Some(ok) = &function.ok {
                check_value(ok, at)?;
            }
        }
    }
    match &function.error {
        Some(Some(error)) => check_value(error, at),
        _ => Ok(()),
    }
}

fn check_def(def: &TypeDef) -> Result<(), SourceError> {
    let at = &def.position;
    match &def.kind {
        TypeDefKind::Record(fields) => fields
            .iter()
            .try_for_each(|field| check_value(&field.ty, at)),
        TypeDefKind::Variant { cases, .. } => {
            let payload = |case: &Case| {
                case.payload
                    .as_ref()
                    .map_or(Ok(()), |payload| check_value(payload, at))
            };
            cases.iter().try_for_each(payload)
        }
        TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => Ok(()),
        TypeDefKind::Alias(target) => check_value(target, at),
    }
}

/// Reports types that cannot be inside a value.
fn check_value(ty: &Type, at: &Position) -> Result<(), SourceError> {
    let both = |parts: [&Option<Box<Type>>; 2]| {
        parts
            .into_iter()
            .flatten()
            .try_for_each(|part| check_value(part, at))
    };
    match &ty.kind {
        TypeKind::List(inner) | TypeKind::Array(inner, _) | TypeKind::Option(inner) => {
            check_value(inner, at)
        }
        TypeKind::Result { ok, error } => both([ok, error]),
        TypeKind::Tuple(items) => items.iter().try_for_each(|item| check_value(item, at)),
        TypeKind::Own(_) => Ok(()),
        TypeKind::Borrow(_) => Err(refused(
            at,
            "a borrowed resource inside a value",
            "only a parameter can be a borrow: pass it next to the value",
        )),
        TypeKind::Stream(element) | TypeKind::Future(element) => both([element, &None]),
        _ => Ok(()),
    }
}
