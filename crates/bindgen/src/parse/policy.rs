//! The policy file, `<package>.thalweg.toml`: options that WIT cannot express.
//!
//! A table is called `interface`, `interface.function`, `interface.resource` or
//! `interface.resource.method`. An unknown key is an error at its line.

use super::functions::DESTROY;
use super::option_table::{self, Place};
use super::options;
use super::sources::{Sources, one_line, position_of};
use crate::SourceError;
use crate::model::{
    Function, FunctionKind, Limits, OverflowPolicy, Resource, ResourceId, StreamOptions, TypeDef,
    TypeId,
};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item, TableLike};

/// The range of a stream's capacity, as [`StreamOptions`] documents it.
const CAPACITY: std::ops::RangeInclusive<i64> = 64..=1_048_576;

/// The settings of a policy file, except the options of functions.
#[derive(Default)]
pub struct Policies {
    pub limits: Limits,
    /// Enums and variants that never get another case.
    pub closed: Vec<TypeId>,
    /// The resources with an async destructor.
    pub destructors: Vec<ResourceId>,
}

/// Reads the package's policy file, if there is one. Stores the options of functions in
/// `functions`, and returns the other settings.
pub fn apply(
    sources: &Sources,
    package: &str,
    interface: &str,
    resources: &[Resource],
    types: &[TypeDef],
    functions: &mut [Function],
) -> Result<Policies, SourceError> {
    let Some((path, text)) = sources.policy(package)? else {
        return Ok(Policies::default());
    };
    let document = match Document::parse(text.as_str()) {
        Ok(document) => document,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            return Err(SourceError {
                position: position_of(path.clone(), &text, at),
                construct: "file".to_owned(),
                reason: format!("it is not TOML: {}", one_line(error.message())),
            });
        }
    };
    let mut file = PolicyFile {
        path: &path,
        text: &text,
        interface,
        resources,
        types,
        functions,
        policies: Policies::default(),
    };
    file.table(&[], document.as_table())?;
    Ok(file.policies)
}

struct PolicyFile<'a> {
    path: &'a Path,
    text: &'a str,
    interface: &'a str,
    resources: &'a [Resource],
    types: &'a [TypeDef],
    functions: &'a mut [Function],
    policies: Policies,
}

impl PolicyFile<'_> {
    fn refused(&self, span: Option<Range<usize>>, key: &[&str], reason: &str) -> SourceError {
        let at = span.map_or(0, |span| span.start);
        SourceError {
            position: position_of(PathBuf::from(self.path), self.text, at),
            construct: format!("key `{}`", key.join(".")),
            reason: reason.to_owned(),
        }
    }

    /// Reads the table `above`: the whole file, the interface, or a resource.
    fn table(&mut self, above: &[&str], table: &dyn TableLike) -> Result<(), SourceError> {
        for (name, item) in table.iter() {
            let key = [above, &[name]].concat();
            let span = table
                .key(name)
                .and_then(toml_edit::Key::span)
                .or_else(|| item.span());
            let function = self
                .functions
                .iter()
                .position(|function| self.key_of(function) == key);
            let is_above = match key.as_slice() {
                [interface] => *interface == self.interface,
                [_, resource] => self.resources.iter().any(|r| r.name == *resource),
                _ => false,
            };
            if !item.is_table_like()
                && let Some(checked) =
                    Self::place(above).and_then(|place| option_table::check(name, place, item))
            {
                checked
                    .and_then(|()| self.option(above, name, item))
                    .map_err(|reason| self.refused(span, &key, &reason))?;
                continue;
            }
            if function.is_none() && !is_above {
                let reason = format!("there is no such function; there are: {}", self.known());
                return Err(self.refused(span, &key, &reason));
            }
            let Some(inner) = item.as_table_like() else {
                return Err(self.refused(
                    span,
                    &key,
                    "it must be a table with options like `capacity`",
                ));
            };
            match function {
                Some(index) => self.options(&key, index, inner)?,
                None => self.table(&key, inner)?,
            }
        }
        Ok(())
    }

    /// Applies the option `name = item` of the interface or of a resource.
    fn option(&mut self, above: &[&str], name: &str, item: &Item) -> Result<(), String> {
        let [_, resource] = above else {
            if name == "closed" {
                self.policies.closed = options::closed(self.types, item.as_str().unwrap_or(""))?;
                return Ok(());
            }
            return options::limit(&mut self.policies.limits, name, item);
        };
        let place = self.resources.iter().position(|r| r.name == *resource);
        let id = ResourceId(place.ok_or_else(|| "there is no such resource".to_owned())?);
        let mut functions = self.functions.iter_mut();
        if name == "constructor" {
            let constructor = functions.find(|f| f.kind == FunctionKind::Constructor(id));
            let constructor = constructor.ok_or_else(|| "it has no constructor".to_owned())?;
            constructor.is_async = true;
        } else {
            if functions.any(|f| f.kind == FunctionKind::Method(id) && f.name == DESTROY) {
                return Err(format!(
                    "it has a method `{DESTROY}`, which is the name of the destructor"
                ));
            }
            self.policies.destructors.push(id);
        }
        Ok(())
    }

    /// The kind of the table `above`.
    fn place(above: &[&str]) -> Option<Place<'static>> {
        match above {
            [] => None,
            [_] => Some(Place::Interface),
            _ => Some(Place::Resource),
        }
    }

    /// `search.matches`, `search.query.progress`.
    fn key_of<'f>(&'f self, function: &'f Function) -> Vec<&'f str> {
        match function.kind {
            FunctionKind::Free => vec![self.interface, &function.name],
            FunctionKind::Constructor(_) => Vec::new(),
            FunctionKind::Method(id) | FunctionKind::Static(id) => {
                vec![self.interface, &self.resources[id.0].name, &function.name]
            }
        }
    }

    /// The names of the functions, for an error message.
    fn known(&self) -> String {
        const SHOWN: usize = 20;
        let keys = self.functions.iter().map(|function| self.key_of(function));
        let keys: Vec<_> = keys
            .filter(|key| !key.is_empty())
            .map(|key| format!("`{}`", key.join(".")))
            .collect();
        let shown = keys[..keys.len().min(SHOWN)].join(", ");
        match keys.len().saturating_sub(SHOWN) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }

    fn options(
        &mut self,
        key: &[&str],
        index: usize,
        table: &dyn TableLike,
    ) -> Result<(), SourceError> {
        let of = key;
        for (name, item) in table.iter() {
            let key = [of, &[name]].concat();
            let key_span = table.key(name).and_then(toml_edit::Key::span);
            let function = &self.functions[index];
            let reason = match (name, function.stream) {
                ("overflow", Some(options)) => {
                    let overflow = self.overflow(&key, item, index, table.get("conflation_key"))?;
                    self.functions[index].stream = Some(StreamOptions {
                        overflow,
                        ..options
                    });
                    continue;
                }
                ("capacity", Some(options)) => {
                    let capacity = self.capacity(&key, item)?;
                    self.functions[index].stream = Some(StreamOptions {
                        capacity,
                        ..options
                    });
                    continue;
                }
                _ => {
                    let applied = option_table::check(name, Place::Function(function), item)
                        .unwrap_or_else(|| {
                            Err(format!(
                                "there is no such option; there are: {}",
                                option_table::function_options()
                            ))
                        })
                        .and_then(|()| {
                            options::apply(self.types, &mut self.functions[index], name, item)
                        });
                    match applied {
                        Ok(()) if name == "conflation_key" && !conflates(table) => {
                            "it is an option of the overflow policy \"conflate\"".to_owned()
                        }
                        Ok(()) => continue,
                        Err(reason) => reason,
                    }
                }
            };
            return Err(self.refused(key_span, &key, &reason));
        }
        Ok(())
    }

    fn overflow(
        &self,
        key: &[&str],
        item: &Item,
        index: usize,
        field: Option<&Item>,
    ) -> Result<OverflowPolicy, SourceError> {
        match item.as_str() {
            Some("block") => Ok(OverflowPolicy::Block),
            Some("latest") => Ok(OverflowPolicy::Latest),
            Some("drop-newest") => Ok(OverflowPolicy::DropNewest),
            Some("drop-oldest") => Ok(OverflowPolicy::DropOldest),
            Some("fail") => Ok(OverflowPolicy::Fail),
            Some("conflate") => {
                let Some(field) = field else {
                    let reason = "it needs a `conflation_key`: the field by which newer records replace older ones";
                    return Err(self.refused(item.span(), key, reason));
                };
                let name = field.as_str().unwrap_or_default();
                match options::conflation_key(self.types, &self.functions[index], name) {
                    Ok(key) => Ok(OverflowPolicy::Conflate { key }),
                    Err(reason) => {
                        let above = &key[..key.len() - 1];
                        Err(self.refused(
                            field.span(),
                            &[above, &["conflation_key"]].concat(),
                            &reason,
                        ))
                    }
                }
            }
            _ => {
                let reason = "it must be \"block\", \"latest\", \"conflate\", \"drop-newest\", \"drop-oldest\" or \"fail\"";
                Err(self.refused(item.span(), key, reason))
            }
        }
    }

    fn capacity(&self, key: &[&str], item: &Item) -> Result<u32, SourceError> {
        match item.as_integer() {
            Some(capacity) if CAPACITY.contains(&capacity) => Ok(capacity as u32),
            _ => {
                let (least, most) = (CAPACITY.start(), CAPACITY.end());
                let reason = format!("it must be a number of records, {least} to {most}");
                Err(self.refused(item.span(), key, &reason))
            }
        }
    }
}

fn conflates(table: &dyn TableLike) -> bool {
    table.get("overflow").and_then(Item::as_str) == Some("conflate")
}
