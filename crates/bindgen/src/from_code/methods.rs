//! Reads the functions of a service or a resource.

use super::model::{Function, FunctionKind, Named, Param, Return, TraitForm, Type};
use super::read::Source;
use super::types::last;
use crate::SourceError;
use crate::parse::DESTROY;
use syn::spanned::Spanned;
use syn::{FnArg, GenericArgument, Pat, ReturnType};

/// The options of `#[thalweg::method]`.
const OPTIONS: &[&str] = &[
    "brief",
    "capacity",
    "conflation_key",
    "format",
    "idempotent",
    "inline",
    "linger",
    "max_record_size",
    "notice_interval",
    "overflow",
    "timeout",
];

const INLINE: &str = "an inline function runs on the caller's thread, without the instance and the call: remove `&self` and `&Call`";

impl Source<'_> {
    /// Reads a function of the trait, or of `resource`.
    pub fn function(
        &self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        resource: Option<&str>,
    ) -> Result<Function, SourceError> {
        let ident = signature.ident.to_string();
        let refuse =
            |span, reason: &str| Err(self.refused(span, format!("function `{ident}`"), reason));
        self.no_generics(&signature.generics, &format!("function `{ident}`"))?;
        let named = self.named(&signature.ident, attributes)?;
        let mut options = Vec::new();
        for attribute in attributes
            .iter()
            .filter(|attribute| self.is_attribute(attribute, "method"))
        {
            for (key, value) in self.options(attribute)? {
                if !OPTIONS.contains(&key.as_str()) {
                    let reason = format!(
                        "`{key}` is not an option; the options are {}",
                        OPTIONS.join(", ")
                    );
                    return refuse(attribute.span(), &reason);
                }
                options.push((key, value));
            }
        }
        let is_inline = options.contains(&("inline".to_owned(), "true".to_owned()));
        let mut params = Vec::new();
        let mut kind = if signature.ident == "new" {
            FunctionKind::Constructor
        } else {
            FunctionKind::Static
        };
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    let text = self.text(receiver.span());
                    if resource.is_some() && text == "self: Arc<Self>" {
                        self.check_destructor(signature)?;
                        kind = FunctionKind::Destructor;
                        continue;
                    }
                    if text != "&self" {
                        return refuse(
                            receiver.span(),
                            "calls run concurrently on one object: write `&self`, and put mutable state into a lock or an atomic",
                        );
                    }
                    if is_inline {
                        return refuse(receiver.span(), INLINE);
                    }
                    kind = FunctionKind::Method;
                }
                FnArg::Typed(typed) => {
                    let Pat::Ident(name) = &*typed.pat else {
                        return refuse(
                            typed.pat.span(),
                            "a parameter must be a plain name: destructure it in the body",
                        );
                    };
                    let param = self.param(&typed.ty)?;
                    if is_inline && matches!(param, Param::Call) {
                        return refuse(typed.ty.span(), INLINE);
                    }
                    params.push((self.named(&name.ident, &[])?, param));
                }
            }
        }
        if is_inline && resource.is_none() {
            kind = FunctionKind::Method;
        }
        if kind != FunctionKind::Method && resource.is_none() {
            return refuse(
                signature.ident.span(),
                "a function of a service needs a receiver: write `&self`",
            );
        }
        let is_async = signature.asyncness.is_some();
        let (ok, error) = self.result(&signature.output, resource)?;
        let makes_itself =
            matches!((&ok, resource), (Some(Return::Own(made)), Some(own)) if made == own);
        if kind == FunctionKind::Constructor && !makes_itself {
            return refuse(
                signature.ident.span(),
                "`new` is the constructor: write `-> Self` or `-> Result<Self, E>`",
            );
        }
        Ok(Function {
            named,
            kind,
            is_async,
            is_inline,
            params,
            ok,
            error,
            options,
        })
    }

    /// Checks that a function that takes its resource by value is the async destructor.
    fn check_destructor(&self, signature: &syn::Signature) -> Result<(), SourceError> {
        let is_call = |input: &FnArg| match input {
            FnArg::Receiver(_) => true,
            FnArg::Typed(typed) => matches!(self.param(&typed.ty), Ok(Param::Call)),
        };
        let ends = signature.ident == DESTROY
            && signature.asyncness.is_some()
            && signature.inputs.iter().all(is_call)
            && matches!(signature.output, ReturnType::Default);
        if ends {
            return Ok(());
        }
        Err(self.refused(
            signature.ident.span(),
            format!("function `{}`", signature.ident),
            "only the async destructor takes its resource by value: write `pub async fn destroy(self: Arc<Self>)`, or `&self`",
        ))
    }

    fn param(&self, ty: &syn::Type) -> Result<Param, SourceError> {
        if let syn::Type::Reference(reference) = ty {
            let refuse = |reason: &str| {
                let text = self.text(ty.span());
                Err(self.refused(ty.span(), format!("type `{text}`"), reason))
            };
            if reference.mutability.is_some() {
                return refuse("a parameter cannot return data: return the value");
            }
            if reference.lifetime.is_some() {
                return refuse("a parameter is borrowed for the call only: remove the lifetime");
            }
            match &*reference.elem {
                syn::Type::Slice(slice) => return Ok(Param::Slice(self.value(&slice.elem)?)),
                syn::Type::Path(path) => {
                    if let Some((name, arguments)) = last(&path.path)
                        && arguments.is_empty()
                    {
                        match name.as_str() {
                            "str" => return Ok(Param::Str),
                            "Call" => return Ok(Param::Call),
                            name if self.resources.contains(name) => {
                                return Ok(Param::Borrow(name.to_owned()));
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
            return refuse(
                "the allowed references are `&str`, `&[T]`, `&Call` and `&R` of a resource: write the owned type",
            );
        }
        if let syn::Type::Path(path) = ty
            && let Some((name, arguments)) = last(&path.path)
        {
            if let ("Arc", [GenericArgument::Type(syn::Type::Path(inner))]) =
                (name.as_str(), &arguments[..])
                && let Some((inner, _)) = last(&inner.path)
                && self.resources.contains(&inner)
            {
                return Ok(Param::Own(inner));
            }
            if arguments.is_empty() && self.resources.contains(&name) {
                let text = self.text(ty.span());
                let reason =
                    "a resource is shared: write `&R` to borrow it, or `Arc<R>` to take it";
                return Err(self.refused(ty.span(), format!("type `{text}`"), reason));
            }
        }
        if let Some((kind, item, form)) = stream_or_future(ty) {
            let Some(item) = self.result_with_failure(item) else {
                let text = self.text(item.span());
                let reason =
                    "the caller may stop sending: write `Result<T, thalweg::Failure>` here";
                return Err(self.refused(item.span(), format!("type `{text}`"), reason));
            };
            let item = self.item(item)?;
            return Ok(match kind {
                StreamKind::Stream => Param::Stream(item, form),
                StreamKind::Future => Param::Future(item, form),
            });
        }
        match self.value(ty)? {
            Type::Owned(own) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                &format!("`Owned` is for fields of a value: write `&{own}` to borrow it, or `Arc<{own}>` to take it"),
            )),
            Type::OwnedStream(..) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                "`Owned` is for fields of a result: write `impl Iterator<Item = Result<T, thalweg::Failure>>` or `impl Future`",
            )),
            value => Ok(Param::Value(value)),
        }
    }

    /// `T` of `Result<T, thalweg::Failure>`.
    fn result_with_failure<'a>(&self, ty: &'a syn::Type) -> Option<&'a syn::Type> {
        let syn::Type::Path(path) = ty else {
            return None;
        };
        let (name, arguments) = last(&path.path)?;
        let ("Result", [GenericArgument::Type(item), GenericArgument::Type(error)]) =
            (name.as_str(), &arguments[..])
        else {
            return None;
        };
        let syn::Type::Path(error) = error else {
            return None;
        };
        // The author may have a value with that name.
        let is_theirs = error.path.segments.len() == 1 && self.values.contains("Failure");
        (last(&error.path)?.0 == "Failure" && !is_theirs).then_some(item)
    }

    /// `T` and `E` of `Result<T, thalweg::CallError<E>>`.
    fn result_with_call_error<'a>(
        &self,
        ty: &'a syn::Type,
    ) -> Option<(&'a syn::Type, &'a syn::Type)> {
        let syn::Type::Path(path) = ty else {
            return None;
        };
        let (name, arguments) = last(&path.path)?;
        let (
            "Result",
            [
                GenericArgument::Type(item),
                GenericArgument::Type(syn::Type::Path(failure)),
            ],
        ) = (name.as_str(), &arguments[..])
        else {
            return None;
        };
        match (last(&failure.path)?.0.as_str(), &last(&failure.path)?.1[..]) {
            ("CallError", [GenericArgument::Type(error)]) => Some((item, error)),
            _ => None,
        }
    }

    /// The element type of a stream or a future. `None`: `()`.
    fn item(&self, ty: &syn::Type) -> Result<Option<Type>, SourceError> {
        if is_unit(ty) {
            Ok(None)
        } else {
            self.value(ty).map(Some)
        }
    }

    #[allow(clippy::type_complexity, reason = "the two sides of a result")]
    fn result(
        &self,
        output: &ReturnType,
        resource: Option<&str>,
    ) -> Result<(Option<Return>, Option<Option<Type>>), SourceError> {
        let ReturnType::Type(_, ty) = output else {
            return Ok((None, None));
        };
        if let syn::Type::Path(path) = &**ty
            && let Some((name, arguments)) = last(&path.path)
            && let ("Result", [GenericArgument::Type(ok), GenericArgument::Type(error)]) =
                (name.as_str(), &arguments[..])
        {
            let kind = if is_unit(error) {
                None
            } else {
                Some(self.value(error)?)
            };
            return Ok((self.out(ok, resource, Some(error))?, Some(kind)));
        }
        Ok((self.out(ty, resource, None)?, None))
    }

    /// The ok side of a function that has `error`.
    fn out(
        &self,
        ty: &syn::Type,
        resource: Option<&str>,
        error: Option<&syn::Type>,
    ) -> Result<Option<Return>, SourceError> {
        if is_unit(ty) {
            return Ok(None);
        }
        if let Some((stream_kind, item, _)) = stream_or_future(ty) {
            if let StreamKind::Stream = stream_kind
                && let Some((item, failure)) = self.result_with_call_error(item)
            {
                let text = self.text(failure.span());
                if error.is_none_or(|error| self.text(error.span()) != text) {
                    let reason = "a stream has the error type of its function: write `Result<impl Iterator<Item = Result<T, CallError<E>>>, E>`";
                    return Err(self.refused(failure.span(), format!("type `{text}`"), reason));
                }
                return Ok(Some(Return::FallibleStream(self.item(item)?)));
            }
            let item = self.item(item)?;
            return Ok(Some(match stream_kind {
                StreamKind::Stream => Return::Stream(item),
                StreamKind::Future => Return::Future(item),
            }));
        }
        if let syn::Type::Path(path) = ty
            && let Some((name, arguments)) = last(&path.path)
            && arguments.is_empty()
        {
            if name == "Self"
                && let Some(own) = resource
            {
                return Ok(Some(Return::Own(own.to_owned())));
            }
            if self.resources.contains(&name) {
                return Ok(Some(Return::Own(name)));
            }
        }
        match self.value(ty)? {
            Type::Owned(own) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                &format!("`Owned` is for fields of a value: write `{own}`"),
            )),
            Type::OwnedStream(..) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                "`Owned` is for fields of a value: write `impl Iterator<Item = T>` or `impl Future<Output = T>`",
            )),
            value => Ok(Some(Return::Value(value))),
        }
    }

    /// Reads a name, which must be valid in WIT.
    pub fn named(
        &self,
        ident: &syn::Ident,
        attributes: &[syn::Attribute],
    ) -> Result<Named, SourceError> {
        if super::names::kebab(&ident.to_string()).is_none() {
            let reason =
                "a name in WIT is ASCII, and each of its words begins with a letter: rename it";
            return Err(self.refused(ident.span(), format!("name `{ident}`"), reason));
        }
        if let Some(cfg) = attributes
            .iter()
            .find(|attribute| attribute.path().is_ident("cfg"))
        {
            let reason = "the interface is the same in every build: remove the `#[cfg]`";
            return Err(self.refused(cfg.span(), format!("name `{ident}`"), reason));
        }
        Ok(Named {
            ident: ident.to_string(),
            docs: docs(attributes),
            position: self.position(ident.span()),
        })
    }
}

fn is_unit(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Tuple(items) if items.elems.is_empty())
}

/// A type that is not a single value.
enum StreamKind {
    Stream,
    Future,
}

/// `T` of `impl Iterator<Item = T>`, `impl Future<Output = T>`, `Box<dyn Iterator<Item = T>>` and
/// `Pin<Box<dyn Future<Output = T>>>`.
fn stream_or_future(ty: &syn::Type) -> Option<(StreamKind, &syn::Type, TraitForm)> {
    let (bounds, form) = match ty {
        syn::Type::ImplTrait(ty) => (&ty.bounds, TraitForm::Impl),
        syn::Type::Path(path) => (&boxed(path)?.bounds, TraitForm::Boxed),
        _ => return None,
    };
    bounds.iter().find_map(|bound| {
        let syn::TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let (name, arguments) = last(&bound.path)?;
        let [GenericArgument::AssocType(item)] = arguments[..] else {
            return None;
        };
        match (name.as_str(), item.ident.to_string().as_str()) {
            ("Iterator", "Item") => Some((StreamKind::Stream, &item.ty, form)),
            ("Future", "Output") => Some((StreamKind::Future, &item.ty, form)),
            _ => None,
        }
    })
}

/// The trait of `Box<dyn TRAIT>` and `Pin<Box<dyn TRAIT>>`.
fn boxed(path: &syn::TypePath) -> Option<&syn::TypeTraitObject> {
    let (name, arguments) = last(&path.path)?;
    match (name.as_str(), &arguments[..]) {
        ("Box", [GenericArgument::Type(syn::Type::TraitObject(object))]) => Some(object),
        ("Pin", [GenericArgument::Type(syn::Type::Path(inner))]) => boxed(inner),
        _ => None,
    }
}

/// The lines of the `///` comments.
fn docs(attributes: &[syn::Attribute]) -> Vec<String> {
    let comments = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
    let line = |line: &str| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned();
    comments
        .flat_map(|text| match text.as_str() {
            "" => vec![String::new()],
            text => text.lines().map(line).collect(),
        })
        .collect()
}
