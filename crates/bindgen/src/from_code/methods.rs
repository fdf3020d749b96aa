//! Functions of a service or a resource.

use super::model::{Form, Function, Kind, Named, Out, Param, Type};
use super::read::Source;
use super::types::last;
use crate::SourceError;
use crate::parse::DESTROY;
use syn::spanned::Spanned;
use syn::{FnArg, GenericArgument, Pat, ReturnType};

/// The options of `#[thalweg::method]`, and of `#[thalweg::service]` besides its package.
const OPTIONS: &[&str] = &[
    "capacity",
    "conflation_key",
    "idempotent",
    "inline",
    "linger",
    "max_record_size",
    "notice_interval",
    "overflow",
    "timeout",
];

const INLINE: &str = "it runs on the caller's thread and sees neither the instance nor a call: leave `&self` and `&Call` out";

impl Source<'_> {
    /// A function of the trait, or with `resource` one of that resource.
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
            .filter(|attribute| self.is_mark(attribute, "method"))
        {
            for (key, value) in self.options(attribute)? {
                if !OPTIONS.contains(&key.as_str()) {
                    let reason = format!("`{key}` is no option; there are {}", OPTIONS.join(", "));
                    return refuse(attribute.span(), &reason);
                }
                options.push((key, value));
            }
        }
        let is_inline = options.contains(&("inline".to_owned(), "true".to_owned()));
        let mut params = Vec::new();
        let mut kind = if signature.ident == "new" {
            Kind::Constructor
        } else {
            Kind::Static
        };
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    let text = self.text(receiver.span());
                    if resource.is_some() && text == "self: Arc<Self>" {
                        self.is_destructor(signature)?;
                        kind = Kind::Destructor;
                        continue;
                    }
                    if text != "&self" {
                        return refuse(
                            receiver.span(),
                            "calls share what they are made on: write `&self`, and what changes into a lock or an atomic",
                        );
                    }
                    if is_inline {
                        return refuse(receiver.span(), INLINE);
                    }
                    kind = Kind::Method;
                }
                FnArg::Typed(typed) => {
                    let Pat::Ident(name) = &*typed.pat else {
                        return refuse(
                            typed.pat.span(),
                            "a parameter is a name: take it apart inside",
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
            kind = Kind::Method;
        }
        if kind != Kind::Method && resource.is_none() {
            return refuse(
                signature.ident.span(),
                "a service is called on itself: write `&self`",
            );
        }
        let is_async = signature.asyncness.is_some();
        let (ok, error) = self.result(&signature.output, resource)?;
        let makes_itself =
            matches!((&ok, resource), (Some(Out::Own(made)), Some(own)) if made == own);
        if kind == Kind::Constructor && !makes_itself {
            return refuse(
                signature.ident.span(),
                "`new` makes the resource: write `-> Self` or `-> Result<Self, E>`",
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

    /// What takes its resource can only be this.
    fn is_destructor(&self, signature: &syn::Signature) -> Result<(), SourceError> {
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
            "what takes its resource is its async destructor: write `pub async fn destroy(self: Arc<Self>)`, or `&self`",
        ))
    }

    fn param(&self, ty: &syn::Type) -> Result<Param, SourceError> {
        if let syn::Type::Reference(reference) = ty {
            let refuse = |reason: &str| {
                let text = self.text(ty.span());
                Err(self.refused(ty.span(), format!("type `{text}`"), reason))
            };
            if reference.mutability.is_some() {
                return refuse("nothing comes back through a parameter: return it");
            }
            if reference.lifetime.is_some() {
                return refuse(
                    "what is borrowed is borrowed for the call alone: leave the lifetime out",
                );
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
                "of references a parameter has `&str`, `&[T]`, `&Call` and that of a resource: write the owned type",
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
                    "others may use it meanwhile: write `&R` to borrow it, or `Arc<R>` to take it";
                return Err(self.refused(ty.span(), format!("type `{text}`"), reason));
            }
        }
        if let Some((sent, item, form)) = sent(ty) {
            let Some(item) = self.or_failure(item) else {
                let text = self.text(item.span());
                let reason =
                    "what the caller sends may break off: write `Result<T, thalweg::Failure>` here";
                return Err(self.refused(item.span(), format!("type `{text}`"), reason));
            };
            let item = self.item(item)?;
            return Ok(match sent {
                Sent::Stream => Param::Stream(item, form),
                Sent::Future => Param::Future(item, form),
            });
        }
        match self.value(ty)? {
            Type::Held(own) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                &format!("it is for what stands inside of a value: write `&{own}` to borrow it, or `Arc<{own}>` to take it"),
            )),
            Type::HeldFlow(..) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                "it is for what stands inside of a result: write `impl Iterator<Item = Result<T, thalweg::Failure>>` or `impl Future`",
            )),
            value => Ok(Param::Value(value)),
        }
    }

    /// `T` of `Result<T, thalweg::Failure>`.
    fn or_failure<'a>(&self, ty: &'a syn::Type) -> Option<&'a syn::Type> {
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
        // The author may have a value of that name.
        let is_theirs = error.path.segments.len() == 1 && self.values.contains("Failure");
        (last(&error.path)?.0 == "Failure" && !is_theirs).then_some(item)
    }

    /// `T` and `E` of `Result<T, thalweg::CallError<E>>`.
    fn or_call_error<'a>(&self, ty: &'a syn::Type) -> Option<(&'a syn::Type, &'a syn::Type)> {
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

    /// What a stream or a future carries; `()` is nothing.
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
    ) -> Result<(Option<Out>, Option<Option<Type>>), SourceError> {
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
    ) -> Result<Option<Out>, SourceError> {
        if is_unit(ty) {
            return Ok(None);
        }
        if let Some((sent, item, _)) = sent(ty) {
            if let Sent::Stream = sent
                && let Some((item, failure)) = self.or_call_error(item)
            {
                let text = self.text(failure.span());
                if error.is_none_or(|error| self.text(error.span()) != text) {
                    let reason = "a stream fails with the error of its function: write `Result<impl Iterator<Item = Result<T, CallError<E>>>, E>`";
                    return Err(self.refused(failure.span(), format!("type `{text}`"), reason));
                }
                return Ok(Some(Out::Failing(self.item(item)?)));
            }
            let item = self.item(item)?;
            return Ok(Some(match sent {
                Sent::Stream => Out::Stream(item),
                Sent::Future => Out::Future(item),
            }));
        }
        if let syn::Type::Path(path) = ty
            && let Some((name, arguments)) = last(&path.path)
            && arguments.is_empty()
        {
            if name == "Self"
                && let Some(own) = resource
            {
                return Ok(Some(Out::Own(own.to_owned())));
            }
            if self.resources.contains(&name) {
                return Ok(Some(Out::Own(name)));
            }
        }
        match self.value(ty)? {
            Type::Held(own) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                &format!("it is for what stands inside of a value: write `{own}`"),
            )),
            Type::HeldFlow(..) => Err(self.refused(
                ty.span(),
                format!("type `{}`", self.text(ty.span())),
                "it is for what stands inside of a value: write `impl Iterator<Item = T>` or `impl Future<Output = T>`",
            )),
            value => Ok(Some(Out::Value(value))),
        }
    }

    /// A name, which WIT has to be able to write.
    pub fn named(
        &self,
        ident: &syn::Ident,
        attributes: &[syn::Attribute],
    ) -> Result<Named, SourceError> {
        if super::names::kebab(&ident.to_string()).is_none() {
            let reason =
                "each word of a name begins with a letter, and all are of ASCII: rename it";
            return Err(self.refused(ident.span(), format!("name `{ident}`"), reason));
        }
        if let Some(cfg) = attributes
            .iter()
            .find(|attribute| attribute.path().is_ident("cfg"))
        {
            let reason = "the interface is the same in every build: take the `#[cfg]` away";
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

/// What is not one value.
enum Sent {
    Stream,
    Future,
}

/// `T` of `impl Iterator<Item = T>`, `impl Future<Output = T>`, `Box<dyn Iterator<Item = T>>` and `Pin<Box<dyn Future<Output = T>>>`.
fn sent(ty: &syn::Type) -> Option<(Sent, &syn::Type, Form)> {
    let (bounds, form) = match ty {
        syn::Type::ImplTrait(ty) => (&ty.bounds, Form::Impl),
        syn::Type::Path(path) => (&boxed(path)?.bounds, Form::Boxed),
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
            ("Iterator", "Item") => Some((Sent::Stream, &item.ty, form)),
            ("Future", "Output") => Some((Sent::Future, &item.ty, form)),
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

/// The lines of `///`.
fn docs(attributes: &[syn::Attribute]) -> Vec<String> {
    let said = attributes
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
    said.flat_map(|text| match text.as_str() {
        "" => vec![String::new()],
        text => text.lines().map(line).collect(),
    })
    .collect()
}
