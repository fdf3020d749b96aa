//! Rust's types as WIT has them, and what to write instead of those that it has not.

use super::glue::same;
use super::model::Type;
use super::read::Source;
use crate::SourceError;
use syn::spanned::Spanned;
use syn::{GenericArgument, PathArguments};

const OWNED: &str = "a reference does not cross the boundary: write the owned type, `String`, `Vec<T>` or the type itself";

/// What to write instead of a type that is known and has no form in WIT.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "usize" => "its size differs between machines: write `u64`",
        "isize" => "its size differs between machines: write `i64`",
        "u128" | "i128" => "WIT has no number of 128 bits: write `[u64; 2]`, or a `String`",
        "str" => "it has no size: write `String`",
        "HashMap" | "BTreeMap" => "WIT has no map: write `Vec<(K, V)>`",
        "HashSet" | "BTreeSet" | "VecDeque" | "LinkedList" | "BinaryHeap" => {
            "WIT knows one kind of list: write `Vec<T>`"
        }
        "Arc" | "Rc" | "Cow" | "Box" | "Cell" | "RefCell" | "Mutex" | "RwLock" => {
            "a value is copied when it crosses: write the type inside of it"
        }
        "Path" | "PathBuf" | "OsString" | "OsStr" | "CString" | "CStr" => {
            "it is text of one system: write `String`, or `Vec<u8>` where it may be no UTF-8"
        }
        "Duration" | "Instant" | "SystemTime" => {
            "WIT has no time: write `u64` and say the unit in the name, as in `delay_ms`"
        }
        "StreamReader" | "Upstream" | "Iterator" | "Stream" => {
            "a stream is an `impl Iterator<Item = T>`: a whole parameter, the whole result of a function, or its ok side; inside of a result's value it is a `thalweg::Held<StreamReader<T>>`"
        }
        "FutureReader" | "UpstreamFuture" | "Future" => {
            "a future is an `impl Future<Output = T>`: a whole parameter, the whole result of a function, or its ok side; inside of a result's value it is a `thalweg::Held<FutureReader<T>>`"
        }
        _ => return None,
    })
}

/// The last name of a path, with what stands in its brackets.
pub fn last(path: &syn::Path) -> Option<(String, Vec<&GenericArgument>)> {
    let last = path.segments.last()?;
    let arguments = match &last.arguments {
        PathArguments::None => Vec::new(),
        PathArguments::AngleBracketed(brackets) => brackets.args.iter().collect(),
        PathArguments::Parenthesized(_) => return None,
    };
    Some((last.ident.to_string(), arguments))
}

impl Source<'_> {
    /// The type of a value.
    pub fn value(&self, ty: &syn::Type) -> Result<Type, SourceError> {
        let refuse = |reason: &str| {
            let text = self.text(ty.span());
            Err(self.refused(ty.span(), format!("type `{text}`"), reason))
        };
        let boxed = |ty| self.value(ty).map(Box::new);
        match ty {
            syn::Type::Paren(inner) => self.value(&inner.elem),
            syn::Type::Group(inner) => self.value(&inner.elem),
            syn::Type::Tuple(items) if items.elems.is_empty() => {
                refuse("it carries nothing: leave it out, or write `bool`")
            }
            syn::Type::Tuple(items) => {
                let items = items.elems.iter().map(|item| self.value(item));
                Ok(Type::Tuple(items.collect::<Result<_, _>>()?))
            }
            syn::Type::Array(array) => {
                let count = match &array.len {
                    syn::Expr::Lit(syn::ExprLit {
                        lit: syn::Lit::Int(count),
                        ..
                    }) => count.base10_parse::<u32>().ok().filter(|count| *count > 0),
                    _ => None,
                };
                match count {
                    Some(count) => Ok(Type::Array(boxed(&array.elem)?, count)),
                    None => {
                        refuse("its length has to stand there as a number from 1: write `[T; 4]`")
                    }
                }
            }
            syn::Type::Slice(_) => refuse("it has no size: write `Vec<T>`"),
            syn::Type::Reference(_) => refuse(OWNED),
            syn::Type::ImplTrait(_) | syn::Type::TraitObject(_) => refuse(
                "a trait is no value: write the type; an iterator or a future may only be a whole parameter, the whole result of a function, or its ok side",
            ),
            syn::Type::FnPtr(_) | syn::Type::Ptr(_) => {
                refuse("an address means nothing on the other side: write a `#[thalweg::resource]`")
            }
            syn::Type::Path(syn::TypePath {
                qself: None, path, ..
            }) => self.path(ty, path),
            _ => refuse("WIT has no such type"),
        }
    }

    fn resource_of(&self, ty: &syn::TypePath) -> Option<String> {
        let ident = ty.path.get_ident()?.to_string();
        self.resources.contains(&ident).then_some(ident)
    }

    /// What a `Held` of a stream or a future carries, as WIT has it.
    fn flow(&self, held: &syn::Type) -> Result<Option<Type>, SourceError> {
        let syn::Type::Path(path) = held else {
            return Ok(None);
        };
        let Some((name, arguments)) = last(&path.path) else {
            return Ok(None);
        };
        let (word, item) = match (name.as_str(), &arguments[..]) {
            ("StreamReader", [GenericArgument::Type(item)]) => ("stream", item),
            ("FutureReader", [GenericArgument::Type(item)]) => ("future", item),
            _ => return Ok(None),
        };
        if matches!(item, syn::Type::Tuple(nothing) if nothing.elems.is_empty()) {
            return Ok(Some(Type::HeldFlow(word, None)));
        }
        let carried = self.value(item)?;
        if same(&carried) && !matches!(carried, Type::HeldFlow(..)) {
            return Ok(Some(Type::HeldFlow(word, Some(Box::new(carried)))));
        }
        let text = self.text(item.span());
        let reason = "what a stream or a future inside of a value carries goes as it is: write numbers, `bool`, `char`, `String`, and lists, options, results and tuples of these";
        Err(self.refused(item.span(), format!("type `{text}`"), reason))
    }

    fn path(&self, ty: &syn::Type, path: &syn::Path) -> Result<Type, SourceError> {
        let refuse = |reason: &str| {
            let text = self.text(ty.span());
            Err(self.refused(ty.span(), format!("type `{text}`"), reason))
        };
        let Some((name, arguments)) = last(path) else {
            return refuse("a function is no value");
        };
        let mut types = Vec::new();
        for argument in &arguments {
            match argument {
                GenericArgument::Type(ty) => types.push(ty),
                GenericArgument::Lifetime(_) => return refuse(OWNED),
                _ => {
                    return refuse(
                        "a type with parameters has no form in WIT: write one type for each use",
                    );
                }
            }
        }
        let boxed = |ty: &syn::Type| self.value(ty).map(Box::new);
        let side = |ty: &syn::Type| match ty {
            syn::Type::Tuple(nothing) if nothing.elems.is_empty() => Ok(None),
            ty => boxed(ty).map(Some),
        };
        let plain = match name.as_str() {
            "bool" => "bool",
            "u8" => "u8",
            "u16" => "u16",
            "u32" => "u32",
            "u64" => "u64",
            "i8" => "s8",
            "i16" => "s16",
            "i32" => "s32",
            "i64" => "s64",
            "f32" => "f32",
            "f64" => "f64",
            "char" => "char",
            "String" => "string",
            _ => "",
        };
        match (name.as_str(), types.as_slice()) {
            (_, []) if !plain.is_empty() => Ok(Type::Plain(plain)),
            ("Vec", [item]) => Ok(Type::List(boxed(item)?)),
            ("Box", [syn::Type::Slice(slice)]) => Ok(Type::BoxedList(boxed(&slice.elem)?)),
            ("Box", [syn::Type::Path(inner)]) if inner.path.is_ident("str") => Ok(Type::BoxedStr),
            ("Option", [item]) => Ok(Type::Option(boxed(item)?)),
            ("Result", [ok, error]) => Ok(Type::Result(side(ok)?, side(error)?)),
            ("Result", [_]) => refuse("its error has to stand there: write `Result<T, E>`"),
            (name, []) if self.values.contains(name) => Ok(Type::Named(name.to_owned())),
            (name, []) if self.resources.contains(name) => refuse(
                "a resource is a whole parameter, the whole result, or its ok side; inside of a value it is a `thalweg::Held<R>`",
            ),
            ("Held", [syn::Type::Path(own)]) if self.resource_of(own).is_some() => {
                Ok(Type::Held(self.resource_of(own).expect("it is one")))
            }
            ("Held", [held]) => match self.flow(held)? {
                Some(flow) => Ok(flow),
                None => refuse(
                    "it holds a resource: write the name of a `#[thalweg::resource]` of this file, a `StreamReader<T>` or a `FutureReader<T>`",
                ),
            },
            (name, types) => match instead(name) {
                Some(reason) => refuse(reason),
                None if types.is_empty() => {
                    refuse("it is no `#[thalweg::value]` of this file: write it here, and mark it")
                }
                None => {
                    refuse("a type with parameters has no form in WIT: write one type for each use")
                }
            },
        }
    }
}
