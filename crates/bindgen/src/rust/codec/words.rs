//! Adjacent numbers in a record are encoded and decoded together.
//!
//! Separate numbers need a bounds check each. An array of known length needs one. A record of 61
//! numbers takes 296 instructions through a stream, instead of 2,673.

use super::super::names::snake;
use super::super::types::{self, owned};
use super::{place, read};
use crate::model::{Field, Package};

/// The minimum number of adjacent numbers that are encoded together.
const MIN_RUN: usize = 2;

/// Adjacent fields of a record.
pub struct FieldRun<'a> {
    fields: &'a [Field],
    /// All fields are numbers, and they are encoded together.
    words: bool,
}

/// The runs of a record, in the order of its fields. Padding between numbers is zero.
pub fn field_runs<'a>(
    package: &'a Package,
    fields: &'a [Field],
) -> impl Iterator<Item = FieldRun<'a>> {
    let number = move |field: &Field| types::is_number(types::resolve_alias(package, &field.ty));
    let runs = fields.chunk_by(move |one, next| number(one) && number(next));
    runs.map(|fields| FieldRun {
        fields,
        words: fields.len() >= MIN_RUN,
    })
}

impl FieldRun<'_> {
    fn first(&self) -> &Field {
        &self.fields[0]
    }

    fn size(&self) -> u32 {
        let last = &self.fields[self.fields.len() - 1];
        last.offset + last.ty.size - self.first().offset
    }

    /// Statements that encode the fields.
    pub fn encode(&self) -> String {
        if !self.words {
            let each = self.fields.iter().map(|field| {
                let (name, at) = (snake(&field.name), place(field.offset));
                format!("self.{name}.encode(to, {at});\n")
            });
            return each.collect();
        }
        let words: String = self
            .fields
            .iter()
            .map(|field| {
                let from = field.offset - self.first().offset;
                let (name, to) = (snake(&field.name), from + field.ty.size);
                format!("words[{from}..{to}].copy_from_slice(&self.{name}.to_le_bytes());\n")
            })
            .collect();
        format!(
            "let mut words = [0; {}];\n{words}to.words({}, words);\n",
            self.size(),
            place(self.first().offset)
        )
    }

    /// Statements that load the numbers before the record is built.
    pub fn load(&self) -> String {
        if !self.words {
            return String::new();
        }
        let (first, size) = (self.first(), self.size());
        format!(
            "let {}: [u8; {size}] = from.words({});\n",
            self.loaded(),
            place(first.offset)
        )
    }

    fn loaded(&self) -> String {
        format!("words_{}", self.first().offset)
    }

    /// The names of the fields, with expressions of their values.
    pub fn read<'b>(&'b self, package: &'b Package) -> impl Iterator<Item = (String, String)> + 'b {
        self.fields.iter().map(move |field| {
            let value = if self.words {
                let from = field.offset - self.first().offset;
                format!(
                    "{}::from_le_bytes(wire::word(&{}, {from}))",
                    owned(package, &field.ty),
                    self.loaded()
                )
            } else {
                read(package, &field.ty, field.offset)
            };
            (snake(&field.name), value)
        })
    }
}
