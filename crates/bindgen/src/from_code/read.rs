//! Reads the items of a Rust file that have an attribute of Thalweg.

use super::model::{Api, FunctionKind, Host, Param, Resource, Return, Type, Value, ValueKind};
use crate::SourceError;
use crate::model::Position;
use proc_macro2::Span;
use std::collections::BTreeSet;
use std::path::Path;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Fields, ImplItem, Item, Meta, Token, TraitItem, Visibility};

/// A file, and the names of its annotated types.
pub struct Source<'a> {
    file: &'a Path,
    text: &'a str,
    pub values: BTreeSet<String>,
    pub resources: BTreeSet<String>,
}

/// Reads a file.
///
/// # Errors
/// The file is not Rust, or the first construct that has no equivalent in WIT.
pub fn read(file: &Path, text: &str) -> Result<Api, SourceError> {
    let mut source = Source {
        file,
        text,
        values: BTreeSet::new(),
        resources: BTreeSet::new(),
    };
    let parsed = syn::parse_file(text).map_err(|error| {
        source.refused(
            error.span(),
            "file".into(),
            &format!("it is not Rust: {error}"),
        )
    })?;
    source.collect_names(&parsed.items)?;
    source.read_items(&parsed.items)
}

impl Source<'_> {
    pub fn refused(&self, span: Span, construct: String, reason: &str) -> SourceError {
        SourceError {
            position: self.position(span),
            construct,
            reason: reason.to_owned(),
        }
    }

    pub fn position(&self, span: Span) -> Position {
        let start = span.start();
        Position {
            file: self.file.to_owned(),
            line: start.line as u32,
            column: start.column as u32 + 1,
        }
    }

    /// The source text of a span, on one line.
    pub fn text(&self, span: Span) -> String {
        let text = self.text.get(span.byte_range()).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Whether the attribute is `#[thalweg::NAME]`, or an imported `#[NAME]`.
    pub fn is_attribute(&self, attribute: &Attribute, name: &str) -> bool {
        let path = attribute.path();
        path.segments.last().is_some_and(|last| last.ident == name)
            && (path.segments.len() == 1 || path.segments[0].ident == "thalweg")
    }

    fn attribute<'a>(&self, attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
        attributes
            .iter()
            .find(|attribute| self.is_attribute(attribute, name))
    }

    /// The options of an attribute: keys and values. A key without a value is `true`.
    pub fn options(&self, attribute: &Attribute) -> Result<Vec<(String, String)>, SourceError> {
        if let Meta::Path(_) = attribute.meta {
            return Ok(Vec::new());
        }
        let wrong = |span| {
            let text = self.text(attribute.span());
            self.refused(
                span,
                format!("`{text}`"),
                "write options as `key` or `key = value`, separated by commas",
            )
        };
        let list = attribute
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .map_err(|error| wrong(error.span()))?;
        let read = list.iter().map(|meta| match meta {
            Meta::Path(path) => Ok((path, "true".to_owned())),
            Meta::NameValue(value) => match &value.value {
                syn::Expr::Lit(literal) => Ok((&value.path, self.text(literal.span()))),
                other => Err(wrong(other.span())),
            },
            Meta::List(_) => Err(wrong(meta.span())),
        });
        read.map(|option| option.map(|(path, value)| (self.text(path.span()), value)))
            .collect()
    }

    pub fn no_generics(
        &self,
        generics: &syn::Generics,
        construct: &str,
    ) -> Result<(), SourceError> {
        match generics.params.first() {
            None => Ok(()),
            Some(syn::GenericParam::Lifetime(lifetime)) => Err(self.refused(
                lifetime.span(),
                construct.to_owned(),
                "borrowed data cannot cross the boundary: write owned types such as `String` and `Vec<T>`",
            )),
            Some(other) => Err(self.refused(
                other.span(),
                construct.to_owned(),
                "WIT has no generics: write one item per type",
            )),
        }
    }

    /// Collects the names of annotated types, because a type may be used before its declaration.
    fn collect_names(&mut self, items: &[Item]) -> Result<(), SourceError> {
        for item in items {
            match item {
                Item::Struct(item) if self.attribute(&item.attrs, "value").is_some() => {
                    self.values.insert(item.ident.to_string());
                }
                Item::Enum(item) if self.attribute(&item.attrs, "value").is_some() => {
                    self.values.insert(item.ident.to_string());
                }
                Item::Impl(item) => {
                    if let Some(attribute) = self.attribute(&item.attrs, "resource") {
                        let named = match &*item.self_ty {
                            syn::Type::Path(path) if item.trait_.is_none() => path.path.get_ident(),
                            _ => None,
                        };
                        let Some(ident) = named else {
                            let reason =
                                "the attribute belongs on an inherent `impl`: write `impl NAME {`";
                            return Err(self.refused(
                                attribute.span(),
                                "`#[thalweg::resource]`".into(),
                                reason,
                            ));
                        };
                        if !self.resources.insert(ident.to_string()) {
                            let reason =
                                "all public functions belong into one `impl`, and this is another";
                            return Err(self.refused(
                                ident.span(),
                                format!("resource `{ident}`"),
                                reason,
                            ));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_items(&self, items: &[Item]) -> Result<Api, SourceError> {
        let (mut values, mut resources, mut services) = (Vec::new(), Vec::new(), Vec::new());
        let mut host = None;
        for item in items {
            match item {
                Item::Struct(item) if self.attribute(&item.attrs, "value").is_some() => {
                    let construct = format!("struct `{}`", item.ident);
                    self.no_generics(&item.generics, &construct)?;
                    let Fields::Named(fields) = &item.fields else {
                        let reason =
                            "a record needs named fields: write `struct NAME { field: T }`";
                        return Err(self.refused(item.ident.span(), construct, reason));
                    };
                    let mut read = Vec::new();
                    for field in &fields.named {
                        let ident = field.ident.as_ref().expect("the fields have names");
                        read.push((self.named(ident, &field.attrs)?, self.value(&field.ty)?));
                    }
                    let kind = if self.is_flags(&item.attrs)? {
                        for ((_, ty), field) in read.iter().zip(&fields.named) {
                            if !matches!(ty, Type::Plain("bool")) {
                                let text = self.text(field.ty.span());
                                let reason = "a flag is a `bool`: write `bool`";
                                let construct = format!("type `{text}`");
                                return Err(self.refused(field.ty.span(), construct, reason));
                            }
                        }
                        ValueKind::Flags(read.into_iter().map(|(named, _)| named).collect())
                    } else {
                        ValueKind::Record(read)
                    };
                    values.push(Value {
                        named: self.named(&item.ident, &item.attrs)?,
                        kind,
                    });
                }
                Item::Enum(item) if self.attribute(&item.attrs, "value").is_some() => {
                    values.push(self.enumeration(item)?);
                }
                Item::Impl(item) if self.attribute(&item.attrs, "resource").is_some() => {
                    resources.push(self.resource(item)?);
                }
                Item::Trait(item) => {
                    if let Some(attribute) = self.attribute(&item.attrs, "service") {
                        services.push((item, attribute));
                    } else if let Some(attribute) = self.attribute(&item.attrs, "host") {
                        if host.is_some() {
                            let reason =
                                "a service has one trait of host imports, and this is another";
                            let construct = format!("host `{}`", item.ident);
                            return Err(self.refused(item.ident.span(), construct, reason));
                        }
                        host = Some(self.host(item, attribute)?);
                    }
                }
                other => self.misplaced(other)?,
            }
        }
        let [(item, attribute)] = services[..] else {
            let (span, reason) = match services.get(1) {
                Some((second, _)) => (
                    second.ident.span(),
                    "a package has one service, and this is another",
                ),
                None => (
                    Span::call_site(),
                    "no trait has the attribute `#[thalweg::service(package = \"me:name@0.1.0\")]`",
                ),
            };
            let mut refused = self.refused(span, "file".into(), reason);
            refused.position.line = refused.position.line.max(1);
            return Err(refused);
        };
        Ok(Api {
            values,
            resources,
            host,
            ..self.service(item, attribute)?
        })
    }

    fn host(&self, item: &syn::ItemTrait, attribute: &Attribute) -> Result<Host, SourceError> {
        let construct = format!("host `{}`", item.ident);
        self.no_generics(&item.generics, &construct)?;
        let refuse = |span, reason: &str| Err(self.refused(span, construct.clone(), reason));
        if !self.options(attribute)?.is_empty() {
            return refuse(attribute.span(), "it has no options");
        }
        let mut functions = Vec::new();
        for function in &item.items {
            let TraitItem::Fn(function) = function else {
                return refuse(
                    function.span(),
                    "a trait of host imports contains only functions",
                );
            };
            let read = self.function(&function.attrs, &function.sig, None)?;
            let is_value =
                |param: &Param| matches!(param, Param::Value(_) | Param::Str | Param::Slice(_));
            if !read.params.iter().all(|(_, param)| is_value(param))
                || !matches!(read.ok, None | Some(Return::Value(_)))
            {
                let reason = "host imports take and return only values";
                return refuse(function.sig.ident.span(), reason);
            }
            if !read.options.is_empty() {
                let reason = "host imports have no options";
                return refuse(function.sig.ident.span(), reason);
            }
            functions.push(read);
        }
        Ok(Host {
            named: self.named(&item.ident, &item.attrs)?,
            functions,
        })
    }

    /// Reads the service trait. The other items of the interface are empty.
    fn service(&self, item: &syn::ItemTrait, attribute: &Attribute) -> Result<Api, SourceError> {
        let construct = format!("service `{}`", item.ident);
        self.no_generics(&item.generics, &construct)?;
        let refuse = |span, reason: &str| Err(self.refused(span, construct.clone(), reason));
        let (mut package, mut options) = (None, Vec::new());
        for (key, value) in self.options(attribute)? {
            match key.as_str() {
                "package" => package = Some(value.trim_matches('"').to_owned()),
                "closed" | "max_queued_bytes" | "max_queued_calls" | "overflow" => {
                    options.push((key, value))
                }
                _ => {
                    return refuse(
                        attribute.span(),
                        &format!(
                            "`{key}` is not an option; the options are package, closed, max_queued_bytes, max_queued_calls, overflow"
                        ),
                    );
                }
            }
        }
        let Some(package) = package else {
            return refuse(
                attribute.span(),
                "it has no package: write `#[thalweg::service(package = \"me:name@0.1.0\")]`",
            );
        };
        let name = package
            .split_once(':')
            .and_then(|(_, rest)| Some(rest.split_once('@')?.0));
        let Some(name) = name.filter(|name| is_kebab(name)) else {
            return refuse(
                attribute.span(),
                "the package must be a name with a version: write `me:name@0.1.0`",
            );
        };
        let mut functions = Vec::new();
        for function in &item.items {
            match function {
                TraitItem::Fn(function) => {
                    functions.push(self.function(&function.attrs, &function.sig, None)?);
                }
                other => return refuse(other.span(), "a service trait contains only functions"),
            }
        }
        Ok(Api {
            name: name.to_owned(),
            package,
            service: self.named(&item.ident, &item.attrs)?,
            options,
            functions,
            values: Vec::new(),
            resources: Vec::new(),
            host: None,
        })
    }

    /// Whether the attribute is `#[thalweg::value(flags)]`.
    fn is_flags(&self, attributes: &[Attribute]) -> Result<bool, SourceError> {
        let attribute = self
            .attribute(attributes, "value")
            .expect("the caller has checked it");
        let options = self.options(attribute)?;
        if let Some((key, value)) = options
            .iter()
            .find(|(key, value)| (key.as_str(), value.as_str()) != ("flags", "true"))
        {
            let text = self.text(attribute.span());
            let reason = format!(
                "`{key} = {value}` is not an option; the only option is `flags`, on a struct"
            );
            return Err(self.refused(attribute.span(), format!("`{text}`"), &reason));
        }
        Ok(!options.is_empty())
    }

    fn enumeration(&self, item: &syn::ItemEnum) -> Result<Value, SourceError> {
        if self.is_flags(&item.attrs)? {
            let reason = "an enum cannot be flags: write a struct with one `bool` per flag";
            let construct = format!("enum `{}`", item.ident);
            return Err(self.refused(item.ident.span(), construct, reason));
        }
        self.no_generics(&item.generics, &format!("enum `{}`", item.ident))?;
        let mut cases = Vec::new();
        for case in &item.variants {
            let carried = match &case.fields {
                Fields::Unit => Vec::new(),
                Fields::Unnamed(fields) if !fields.unnamed.is_empty() => {
                    let types = fields.unnamed.iter().map(|field| self.value(&field.ty));
                    types.collect::<Result<_, _>>()?
                }
                _ => {
                    let reason = "a case in WIT has one payload: move the fields into a struct";
                    return Err(self.refused(
                        case.ident.span(),
                        format!("case `{}`", case.ident),
                        reason,
                    ));
                }
            };
            cases.push((self.named(&case.ident, &case.attrs)?, carried));
        }
        Ok(Value {
            named: self.named(&item.ident, &item.attrs)?,
            kind: ValueKind::Enum(cases),
        })
    }

    fn resource(&self, item: &syn::ItemImpl) -> Result<Resource, SourceError> {
        let syn::Type::Path(path) = &*item.self_ty else {
            unreachable!("`collect_names` has checked it");
        };
        let ident = path
            .path
            .get_ident()
            .expect("`collect_names` has checked it");
        self.no_generics(&item.generics, &format!("resource `{ident}`"))?;
        let mut functions = Vec::new();
        for function in &item.items {
            if let ImplItem::Fn(function) = function
                && matches!(function.vis, Visibility::Public(_))
            {
                functions.push(self.function(
                    &function.attrs,
                    &function.sig,
                    Some(&ident.to_string()),
                )?);
            }
        }
        functions.sort_by_key(|function| function.kind != FunctionKind::Constructor);
        let (destructors, functions): (Vec<_>, Vec<_>) = functions
            .into_iter()
            .partition(|function| function.kind == FunctionKind::Destructor);
        Ok(Resource {
            named: self.named(ident, &item.attrs)?,
            functions,
            destructor: destructors.into_iter().next(),
        })
    }

    /// Reports an attribute on an item that cannot have it.
    fn misplaced(&self, item: &Item) -> Result<(), SourceError> {
        let attributes = match item {
            Item::Struct(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Type(item) => &item.attrs,
            Item::Union(item) => &item.attrs,
            _ => return Ok(()),
        };
        for (name, place) in [
            ("service", "a trait"),
            ("host", "a trait"),
            ("value", "a struct or an enum"),
            ("resource", "an `impl`"),
        ] {
            if let Some(attribute) = self.attribute(attributes, name) {
                let reason = format!("the attribute belongs on {place}");
                return Err(self.refused(
                    attribute.span(),
                    format!("`#[thalweg::{name}]`"),
                    &reason,
                ));
            }
        }
        Ok(())
    }
}

fn is_kebab(name: &str) -> bool {
    super::names::kebab(&name.replace('-', "_")).is_some_and(|same| same == name)
}
