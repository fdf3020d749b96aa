//! Converts Rust types to WIT types, and names an alternative for types that WIT does not have.

use super::glue::is_same;
use super::model::Type;
use super::read::Source;
use crate::SourceError;
use syn::spanned::Spanned;
use syn::{GenericArgument, PathArguments};

const OWNED: &str =
    "a reference cannot cross the boundary: write the owned type, such as `String` or `Vec<T>`";

/// The alternative for a well-known type that has no equivalent in WIT.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "usize" => "its size differs between machines: write `u64`",
        "isize" => "its size differs between machines: write `i64`",
        "u128" | "i128" => "WIT has no 128-bit integers: write `[u64; 2]`, or a `String`",
        "str" => "it is unsized: write `String`",
        "HashMap" | "BTreeMap" => "WIT has no maps: write `Vec<(K, V)>`",
        "HashSet" | "BTreeSet" | "VecDeque" | "LinkedList" | "BinaryHeap" => {
            "WIT has only lists: write `Vec<T>`"
        }
        "Arc" | "Rc" | "Cow" | "Box" | "Cell" | "RefCell" | "Mutex" | "RwLock" => {
            "a value is copied across the boundary: write the inner type"
        }
        "Path" | "PathBuf" | "OsString" | "OsStr" | "CString" | "CStr" => {
            "it is platform-specific text: write `String`, or `Vec<u8>` if it may not be UTF-8"
        }
        "Duration" | "Instant" | "SystemTime" => {
            "WIT has no time types: write `u64`, with the unit in the name, as in `delay_ms`"
        }
        "StreamReader" | "Upstream" | "Iterator" | "Stream" => {
            "write a stream as `impl Iterator<Item = T>`, which must be a whole parameter, a whole result or its ok side; inside a result it is `thalweg::Owned<StreamReader<T>>`"
        }
        "FutureReader" | "UpstreamFuture" | "Future" => {
            "write a future as `impl Future<Output = T>`, which must be a whole parameter, a whole result or its ok side; inside a result it is `thalweg::Owned<FutureReader<T>>`"
        }
        _ => return None,
    })
}

/// The last name of a path, with its generic arguments.
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
    /// Converts the type of a value.
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
                refuse("it has no value: remove it, or write `bool`")
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
                    None => refuse("the length must be a literal of at least 1: write `[T; 4]`"),
                }
            }
            syn::Type::Slice(_) => refuse("it is unsized: write `Vec<T>`"),
            syn::Type::Reference(_) => refuse(OWNED),
            syn::Type::ImplTrait(_) | syn::Type::TraitObject(_) => refuse(
                "a trait is not a value: write the type; an iterator or a future must be a whole parameter, a whole result or its ok side",
            ),
            syn::Type::FnPtr(_) | syn::Type::Ptr(_) => refuse(
                "an address has no meaning in another language: use a `#[thalweg::resource]`",
            ),
            syn::Type::Path(syn::TypePath {
                qself: None, path, ..
            }) => self.path(ty, path),
            _ => refuse("WIT has no equivalent"),
        }
    }

    fn resource_of(&self, ty: &syn::TypePath) -> Option<String> {
        let ident = ty.path.get_ident()?.to_string();
        self.resources.contains(&ident).then_some(ident)
    }

    /// Converts a `Owned` of a stream or a future.
    fn held_stream(&self, held: &syn::Type) -> Result<Option<Type>, SourceError> {
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
            return Ok(Some(Type::OwnedStream(word, None)));
        }
        let carried = self.value(item)?;
        if is_same(&carried) && !matches!(carried, Type::OwnedStream(..)) {
            return Ok(Some(Type::OwnedStream(word, Some(Box::new(carried)))));
        }
        let text = self.text(item.span());
        let reason = "a stream or a future inside a value carries only numbers, `bool`, `char`, `String`, and lists, options, results and tuples of these";
        Err(self.refused(item.span(), format!("type `{text}`"), reason))
    }

    fn path(&self, ty: &syn::Type, path: &syn::Path) -> Result<Type, SourceError> {
        let refuse = |reason: &str| {
            let text = self.text(ty.span());
            Err(self.refused(ty.span(), format!("type `{text}`"), reason))
        };
        let Some((name, arguments)) = last(path) else {
            return refuse("a function is not a value");
        };
        let mut types = Vec::new();
        for argument in &arguments {
            match argument {
                GenericArgument::Type(ty) => types.push(ty),
                GenericArgument::Lifetime(_) => return refuse(OWNED),
                _ => {
                    return refuse("WIT has no generic types: write one type per use");
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
            ("Result", [_]) => refuse("the error type must be explicit: write `Result<T, E>`"),
            (name, []) if self.values.contains(name) => Ok(Type::Named(name.to_owned())),
            (name, []) if self.resources.contains(name) => refuse(
                "a resource must be a whole parameter, a whole result or its ok side; inside a value it is `thalweg::Owned<R>`",
            ),
            ("Owned", [syn::Type::Path(own)]) if self.resource_of(own).is_some() => Ok(
                Type::Owned(self.resource_of(own).expect("the guard has checked it")),
            ),
            ("Owned", [held]) => match self.held_stream(held)? {
                Some(stream) => Ok(stream),
                None => refuse(
                    "`Owned` is for a `#[thalweg::resource]` of this file, a `StreamReader<T>` or a `FutureReader<T>`",
                ),
            },
            (name, types) => match instead(name) {
                Some(reason) => refuse(reason),
                None if types.is_empty() => refuse(
                    "it is not a `#[thalweg::value]` of this file: declare it here with the attribute",
                ),
                None => refuse("WIT has no generic types: write one type per use"),
            },
        }
    }
}
