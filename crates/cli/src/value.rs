//! Converts between JSON and messages, by the description of a type.
//!
//! The JSON is that of the schema which `thalweg gen --lang json-schema` writes: docs/schemas.md. In
//! addition, the encoder accepts JSON numbers for 64-bit integers and for floats.
//!
//! The layout of messages is documented in `thalweg.h`. Values with handles are the reason why this
//! module does not use the CBOR of the library.

use std::fmt;
use std::fmt::Write;

use serde_json::{Map, Number, Value};
use thalweg::wire::{MAX_SIZE, MAX_UNSIZED, Shape};

use crate::description::{Kind, Type};

/// Bytes of a message's header.
const HEADER: usize = 16;

/// A JSON value that is not one of its type, or that cannot be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The place in the JSON: `$.points[3].x`.
    pub path: String,
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

/// Returns the handle for a JSON value at a place whose type is a resource, a stream or a future.
pub type GiveHandle<'h> = dyn FnMut(&Type<'_>, &Value, &str) -> Result<u64, Refused> + 'h;

/// Encodes a message.
///
/// # Errors
/// The first part of `json` that is not a value of its type.
pub fn encode(
    ty: &Type<'_>,
    json: &Value,
    give_handle: &mut GiveHandle<'_>,
) -> Result<Vec<u8>, Refused> {
    let mut encoder = Encoder {
        bytes: vec![0; ty.size as usize],
        slices: Vec::new(),
        handles: Vec::new(),
        path: "$".to_owned(),
        give_handle,
    };
    encoder.put(ty, 0, json)?;
    encoder.finish(Shape::hash_of(ty.text))
}

struct Encoder<'e, 'h> {
    /// The message from its root on.
    bytes: Vec<u8>,
    /// The places in `bytes` of offsets that count from the root. In a message they count from its
    /// first byte, which is known only at the end.
    slices: Vec<usize>,
    handles: Vec<u64>,
    path: String,
    give_handle: &'e mut GiveHandle<'h>,
}

impl Encoder<'_, '_> {
    fn refused(&self, reason: impl Into<String>) -> Refused {
        Refused {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    fn expected(&self, what: &str, json: &Value) -> Refused {
        self.refused(format!("expected {what}, found {}", shown(json)))
    }

    fn finish(mut self, layout: u64) -> Result<Vec<u8>, Refused> {
        let root = HEADER + 8 * self.handles.len();
        let size = root + self.bytes.len();
        if size > MAX_SIZE as usize {
            return Err(self.refused(TOO_LARGE));
        }
        for at in std::mem::take(&mut self.slices) {
            let offset = self.word(at) + root as u32;
            self.write(at, &offset.to_le_bytes());
        }
        let mut message = Vec::with_capacity(size);
        let header = [
            size as u32,
            layout as u32,
            self.handles.len() as u32,
            root as u32,
        ];
        header
            .iter()
            .for_each(|word| message.extend_from_slice(&word.to_le_bytes()));
        let handles = self.handles.iter();
        handles.for_each(|handle| message.extend_from_slice(&handle.to_le_bytes()));
        message.extend_from_slice(&self.bytes);
        Ok(message)
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.bytes[at..at + 4].first_chunk();
        u32::from_le_bytes(*bytes.expect("the range has four bytes"))
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Encodes a part of a value, which `step` names.
    fn part(&mut self, step: &str, ty: &Type<'_>, at: usize, json: &Value) -> Result<(), Refused> {
        let before = self.path.len();
        self.path.push_str(step);
        self.put(ty, at, json)?;
        self.path.truncate(before);
        Ok(())
    }

    /// Encodes a value whose fixed part is at `at`.
    fn put(&mut self, ty: &Type<'_>, at: usize, json: &Value) -> Result<(), Refused> {
        match &ty.kind {
            Kind::Unit => match json {
                Value::Null => Ok(()),
                _ => Err(self.expected("null", json)),
            },
            Kind::Bool => match json {
                Value::Bool(value) => {
                    self.write(at, &[(*value).into()]);
                    Ok(())
                }
                _ => Err(self.expected("true or false", json)),
            },
            Kind::Unsigned => {
                let most = u64::MAX >> (64 - 8 * ty.size);
                let value = integer(json, ty.size, Number::as_u64);
                let value = value.filter(|value| *value <= most).ok_or_else(|| {
                    self.expected(&format!("an integer from 0 to {most}{}", quoted(ty)), json)
                })?;
                self.write(at, &value.to_le_bytes()[..ty.size as usize]);
                Ok(())
            }
            Kind::Signed => {
                let most = i64::MAX >> (64 - 8 * ty.size);
                let least = -most - 1;
                let value = integer(json, ty.size, Number::as_i64);
                let value = value.filter(|value| (least..=most).contains(value));
                let value = value.ok_or_else(|| {
                    let range = format!("an integer from {least} to {most}{}", quoted(ty));
                    self.expected(&range, json)
                })?;
                self.write(at, &value.to_le_bytes()[..ty.size as usize]);
                Ok(())
            }
            Kind::Float => {
                let bits = float(json, ty.size).ok_or_else(|| {
                    let digits = 2 * ty.size;
                    let what = format!("a number, or a string with {digits} hex digits after `0x`");
                    self.expected(&what, json)
                })?;
                self.write(at, &bits.to_le_bytes()[..ty.size as usize]);
                Ok(())
            }
            Kind::Char => {
                let mut letters = json.as_str().unwrap_or_default().chars();
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => {
                        self.write(at, &u32::from(letter).to_le_bytes());
                        Ok(())
                    }
                    _ => Err(self.expected("a string of one character", json)),
                }
            }
            Kind::Text => match json {
                Value::String(text) => self.tail(at, text.as_bytes()),
                _ => Err(self.expected("a string", json)),
            },
            Kind::List(item) if is_byte(item) => {
                let bytes = hex(json).ok_or_else(|| self.expected(HEX, json))?;
                self.tail(at, &bytes)
            }
            Kind::Array(item, count) if is_byte(item) => {
                let bytes = hex(json).filter(|bytes| bytes.len() == *count as usize);
                let bytes = bytes
                    .ok_or_else(|| self.expected(&format!("{HEX}, with {count} bytes"), json))?;
                self.write(at, &bytes);
                Ok(())
            }
            Kind::List(item) => self.list(item, at, json),
            Kind::Array(item, count) => {
                let items = json.as_array().filter(|all| all.len() == *count as usize);
                let items = items.ok_or_else(|| {
                    self.expected(&format!("an array with {count} elements"), json)
                })?;
                self.items(item, at, items)
            }
            Kind::Option(value, payload) => {
                if json.is_null() {
                    return Ok(());
                }
                let [some] = self.members(json, &["some"], "null, or an object with `some`")?;
                self.write(at, &[1]);
                self.part(".some", value, at + *payload as usize, some)
            }
            Kind::Result([ok, error], payload) => {
                const WHAT: &str = "an object with `ok` or `error`";
                let at_payload = at + *payload as usize;
                if json.get("error").is_some() {
                    let [value] = self.members(json, &["error"], WHAT)?;
                    self.write(at, &[1]);
                    return self.part(".error", error, at_payload, value);
                }
                let [value] = self.members(json, &["ok"], WHAT)?;
                self.part(".ok", ok, at_payload, value)
            }
            Kind::Tuple(fields) => {
                let items = json.as_array().filter(|all| all.len() == fields.len());
                let items = items.ok_or_else(|| {
                    self.expected(&format!("an array with {} elements", fields.len()), json)
                })?;
                for ((number, field), item) in fields.iter().enumerate().zip(items) {
                    let at = at + field.offset as usize;
                    self.part(&format!("[{number}]"), &field.ty, at, item)?;
                }
                Ok(())
            }
            Kind::Record(fields) => {
                let members = json
                    .as_object()
                    .ok_or_else(|| self.expected("an object", json))?;
                let known = |name: &String| fields.iter().any(|field| field.name == *name);
                if let Some(name) = members.keys().find(|name| !known(name)) {
                    return Err(self.refused(format!("there is no field `{name}`")));
                }
                for field in fields {
                    let value = members.get(field.name).ok_or_else(|| {
                        self.refused(format!("the field `{}` is missing", field.name))
                    })?;
                    let at = at + field.offset as usize;
                    self.part(&format!(".{}", field.name), &field.ty, at, value)?;
                }
                Ok(())
            }
            Kind::Variant(cases, payload) => {
                let name = json.get("case").and_then(Value::as_str);
                let number = name.and_then(|name| cases.iter().position(|one| one.name == name));
                let Some(number) = number else {
                    let names = cases.iter().map(|case| case.name);
                    let what = format!("an object with `case`, {}", one_of(names));
                    return Err(self.expected(&what, json));
                };
                let tag = Type::tag_size(cases.len()) as usize;
                self.write(at, &(number as u32).to_le_bytes()[..tag]);
                match &cases[number].payload {
                    None => self
                        .members(json, &["case"], "an object with only `case`")
                        .map(|[_]| ()),
                    Some(ty) => {
                        let what = "an object with `case` and `value`";
                        let [_, value] = self.members(json, &["case", "value"], what)?;
                        self.part(".value", ty, at + *payload as usize, value)
                    }
                }
            }
            Kind::Enum(labels) => {
                let name = json.as_str();
                let number = name.and_then(|name| labels.iter().position(|label| *label == name));
                let number =
                    number.ok_or_else(|| self.expected(&one_of(labels.iter().copied()), json))?;
                self.write(at, &(number as u32).to_le_bytes()[..ty.size as usize]);
                Ok(())
            }
            Kind::Flags(labels) => {
                let what = || {
                    let names = one_of(labels.iter().copied());
                    format!("an array of different names, each {names}")
                };
                let items = json.as_array();
                let items = items.ok_or_else(|| self.expected(&what(), json))?;
                let mut bits = 0u32;
                for item in items {
                    let number = item
                        .as_str()
                        .and_then(|name| labels.iter().position(|label| *label == name))
                        .filter(|number| bits & (1 << number) == 0);
                    bits |= 1 << number.ok_or_else(|| self.expected(&what(), json))?;
                }
                self.write(at, &bits.to_le_bytes()[..ty.size as usize]);
                Ok(())
            }
            Kind::Own(_) | Kind::Borrow(_) | Kind::Stream(_) | Kind::Future(_) => {
                let handle = (self.give_handle)(ty, json, &self.path)?;
                let index = self.handles.len() as u32;
                self.handles.push(handle);
                self.write(at, &index.to_le_bytes());
                Ok(())
            }
        }
    }

    /// The members of an object that has exactly these.
    fn members<'v, const N: usize>(
        &self,
        json: &'v Value,
        names: &[&str; N],
        what: &str,
    ) -> Result<[&'v Value; N], Refused> {
        let members: Option<&Map<String, Value>> = json.as_object();
        let members = members.filter(|members| members.len() == N);
        let found = members.map(|members| names.map(|name| members.get(name)));
        match found {
            Some(found) if found.iter().all(Option::is_some) => {
                Ok(found.map(|value| value.expect("all of them were found")))
            }
            _ => Err(self.expected(what, json)),
        }
    }

    /// Makes room for a tail of `count` parts. Writes its slice at `at`, and returns its place.
    fn tail_room(&mut self, at: usize, count: usize, ty: &Type<'_>) -> Result<usize, Refused> {
        let size = ty.size as usize;
        let from = self.bytes.len().next_multiple_of(ty.align as usize);
        let end = count
            .checked_mul(size)
            .and_then(|size| from.checked_add(size))
            .filter(|end| *end <= MAX_SIZE as usize)
            .ok_or_else(|| self.refused(TOO_LARGE))?;
        self.write(at + 4, &(count as u32).to_le_bytes());
        if count == 0 || size == 0 {
            return Ok(from);
        }
        self.bytes
            .try_reserve(end - self.bytes.len())
            .map_err(|_| self.refused("there is no memory for the message"))?;
        self.bytes.resize(end, 0);
        self.write(at, &(from as u32).to_le_bytes());
        self.slices.push(at);
        Ok(from)
    }

    /// Writes bytes as a tail.
    fn tail(&mut self, at: usize, bytes: &[u8]) -> Result<(), Refused> {
        const BYTE: Type<'_> = Type {
            kind: Kind::Unsigned,
            size: 1,
            align: 1,
            text: "u8",
        };
        let from = self.tail_room(at, bytes.len(), &BYTE)?;
        if !bytes.is_empty() {
            self.write(from, bytes);
        }
        Ok(())
    }

    fn list(&mut self, item: &Type<'_>, at: usize, json: &Value) -> Result<(), Refused> {
        let items = json
            .as_array()
            .ok_or_else(|| self.expected("an array", json))?;
        if item.size == 0 && items.len() > MAX_UNSIZED as usize {
            return Err(self.refused(format!(
                "a list of values without contents has at most {MAX_UNSIZED} elements"
            )));
        }
        let from = self.tail_room(at, items.len(), item)?;
        self.items(item, from, items)
    }

    fn items(&mut self, item: &Type<'_>, from: usize, items: &[Value]) -> Result<(), Refused> {
        for (number, json) in items.iter().enumerate() {
            let at = from + number * item.size as usize;
            self.part(&format!("[{number}]"), item, at, json)?;
        }
        Ok(())
    }
}

const TOO_LARGE: &str = "the message would be larger than 2 GiB";
const HEX: &str = "a string of pairs of hex digits";

/// The addition to an error message for a type whose values are strings.
fn quoted(ty: &Type<'_>) -> &'static str {
    match ty.size {
        8 => ", as a string or a number",
        _ => "",
    }
}

fn is_byte(ty: &Type<'_>) -> bool {
    matches!(ty.kind, Kind::Unsigned) && ty.size == 1
}

/// An integer of `size` bytes. One of 8 bytes may be a string of decimal digits.
fn integer<T: std::str::FromStr + ToString>(
    json: &Value,
    size: u32,
    of_number: fn(&Number) -> Option<T>,
) -> Option<T> {
    match json {
        Value::Number(number) => of_number(number),
        Value::String(text) if size == 8 => {
            let value: T = text.parse().ok()?;
            (value.to_string() == *text).then_some(value)
        }
        _ => None,
    }
}

/// The bits of a float of `size` bytes.
fn float(json: &Value, size: u32) -> Option<u64> {
    match json {
        Value::Number(number) => {
            let value = number.as_f64()?;
            match size {
                4 => Some(value as f32)
                    .filter(|value| value.is_finite())
                    .map(|value| value.to_bits().into()),
                _ => Some(value.to_bits()),
            }
        }
        Value::String(text) => {
            let digits = text.strip_prefix("0x")?;
            let is_hex = digits.bytes().all(|digit| HEX_DIGITS.contains(&digit));
            (is_hex && digits.len() == 2 * size as usize)
                .then(|| u64::from_str_radix(digits, 16).ok())
                .flatten()
        }
        _ => None,
    }
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The bytes that a string of hex digits contains.
fn hex(json: &Value) -> Option<Vec<u8>> {
    let text = json.as_str()?.as_bytes();
    let digit = |letter: u8| HEX_DIGITS.iter().position(|digit| *digit == letter);
    let (pairs, []) = text.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8))
        .collect()
}

/// The names of the choices: "`a`, `b` or `c`".
fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// A value as an error message shows it.
fn shown(json: &Value) -> String {
    const LONGEST: usize = 40;
    match json {
        Value::Array(items) => format!("an array with {} elements", items.len()),
        Value::Object(members) => {
            let mut names: Vec<_> = members.keys().map(String::as_str).collect();
            names.sort_unstable();
            names.truncate(4);
            let more = if members.len() > 4 { ", .." } else { "" };
            format!("an object with {{{}{more}}}", names.join(", "))
        }
        scalar => {
            let text = scalar.to_string();
            match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}..", &text[..end]),
                None => text,
            }
        }
    }
}

/// Returns the JSON for the handle with this index, at a place with this type.
pub type TakeHandle<'h> = dyn FnMut(&Type<'_>, u32) -> Option<String> + 'h;

/// Writes the value at `at` of a message or a batch as JSON on one line, with the fields in WIT's
/// order. `None`: the bytes are not a value of the type.
pub fn decode(
    ty: &Type<'_>,
    bytes: &[u8],
    at: usize,
    take_handle: &mut TakeHandle<'_>,
) -> Option<String> {
    let mut decoder = Decoder {
        bytes,
        out: String::new(),
        take_handle,
    };
    decoder.get(ty, at)?;
    Some(decoder.out)
}

/// The offset of the root in a message.
pub fn root(message: &[u8]) -> Option<usize> {
    let word = message.get(12..16)?.first_chunk()?;
    Some(u32::from_le_bytes(*word) as usize)
}

struct Decoder<'d, 'h> {
    bytes: &'d [u8],
    out: String,
    take_handle: &'d mut TakeHandle<'h>,
}

impl Decoder<'_, '_> {
    /// A little-endian number of `size` bytes.
    fn number(&self, at: usize, size: u32) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(size as usize)?)?;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// A slice: its offset and its length.
    fn slice(&self, at: usize) -> Option<(usize, usize)> {
        let (offset, count) = (self.number(at, 4)?, self.number(at + 4, 4)?);
        Some((offset as usize, count as usize))
    }

    fn tail(&self, at: usize) -> Option<&[u8]> {
        let (offset, count) = self.slice(at)?;
        self.bytes.get(offset..offset.checked_add(count)?)
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(&Value::from(text).to_string());
    }

    fn hex(&mut self, bytes: Vec<u8>) {
        self.out.push('"');
        for byte in bytes {
            let _ = write!(self.out, "{byte:02x}");
        }
        self.out.push('"');
    }

    /// Writes a separator, except before the first part.
    fn separate(&mut self, number: usize) {
        if number > 0 {
            self.out.push_str(", ");
        }
    }

    fn items(&mut self, item: &Type<'_>, from: usize, count: usize) -> Option<()> {
        self.out.push('[');
        for number in 0..count {
            self.separate(number);
            self.get(item, from.checked_add(number * item.size as usize)?)?;
        }
        self.out.push(']');
        Some(())
    }

    /// `{"some": ..}`
    fn one(&mut self, name: &str, ty: &Type<'_>, at: usize) -> Option<()> {
        let _ = write!(self.out, "{{\"{name}\": ");
        self.get(ty, at)?;
        self.out.push('}');
        Some(())
    }

    fn get(&mut self, ty: &Type<'_>, at: usize) -> Option<()> {
        match &ty.kind {
            Kind::Unit => self.out.push_str("null"),
            Kind::Bool => {
                let value = self.number(at, 1)? != 0;
                let _ = write!(self.out, "{value}");
            }
            Kind::Unsigned => {
                let value = self.number(at, ty.size)?;
                let _ = match ty.size {
                    8 => write!(self.out, "\"{value}\""),
                    _ => write!(self.out, "{value}"),
                };
            }
            Kind::Signed => {
                let unused = 64 - 8 * ty.size;
                let value = (self.number(at, ty.size)? << unused).cast_signed() >> unused;
                let _ = match ty.size {
                    8 => write!(self.out, "\"{value}\""),
                    _ => write!(self.out, "{value}"),
                };
            }
            Kind::Float => {
                let bits = self.number(at, ty.size)?;
                let digits = 2 * ty.size as usize;
                let _ = write!(self.out, "\"0x{bits:0digits$x}\"");
            }
            Kind::Char => {
                let letter = char::from_u32(self.number(at, 4)? as u32)?;
                self.text(letter.encode_utf8(&mut [0; 4]));
            }
            Kind::Text => {
                let text = std::str::from_utf8(self.tail(at)?).ok()?.to_owned();
                self.text(&text);
            }
            Kind::List(item) if is_byte(item) => {
                let bytes = self.tail(at)?.to_vec();
                self.hex(bytes);
            }
            Kind::Array(item, count) if is_byte(item) => {
                let bytes = self.bytes.get(at..at.checked_add(*count as usize)?)?;
                self.hex(bytes.to_vec());
            }
            Kind::List(item) => {
                let (offset, count) = self.slice(at)?;
                if item.size == 0 && count > MAX_UNSIZED as usize {
                    return None;
                }
                return self.items(item, offset, count);
            }
            Kind::Array(item, count) => return self.items(item, at, *count as usize),
            Kind::Option(value, payload) => match self.number(at, 1)? {
                0 => self.out.push_str("null"),
                _ => return self.one("some", value, at + *payload as usize),
            },
            Kind::Result([ok, error], payload) => {
                let (name, side) = match self.number(at, 1)? {
                    0 => ("ok", ok),
                    _ => ("error", error),
                };
                return self.one(name, side, at + *payload as usize);
            }
            Kind::Tuple(fields) => {
                self.out.push('[');
                for (number, field) in fields.iter().enumerate() {
                    self.separate(number);
                    self.get(&field.ty, at + field.offset as usize)?;
                }
                self.out.push(']');
            }
            Kind::Record(fields) => {
                self.out.push('{');
                for (number, field) in fields.iter().enumerate() {
                    self.separate(number);
                    let _ = write!(self.out, "\"{}\": ", field.name);
                    self.get(&field.ty, at + field.offset as usize)?;
                }
                self.out.push('}');
            }
            Kind::Variant(cases, payload) => {
                let number = self.number(at, Type::tag_size(cases.len()))?;
                let case = cases.get(number as usize)?;
                let _ = write!(self.out, "{{\"case\": \"{}\"", case.name);
                if let Some(ty) = &case.payload {
                    self.out.push_str(", \"value\": ");
                    self.get(ty, at + *payload as usize)?;
                }
                self.out.push('}');
            }
            Kind::Enum(labels) => {
                let number = self.number(at, ty.size)?;
                let label = labels.get(number as usize)?;
                let _ = write!(self.out, "\"{label}\"");
            }
            Kind::Flags(labels) => {
                let bits = self.number(at, ty.size)?;
                let set = labels.iter().enumerate();
                let set = set.filter(|(number, _)| bits & (1 << number) != 0);
                let names: Vec<_> = set.map(|(_, label)| format!("\"{label}\"")).collect();
                let _ = write!(self.out, "[{}]", names.join(", "));
            }
            Kind::Own(_) | Kind::Borrow(_) | Kind::Stream(_) | Kind::Future(_) => {
                let index = self.number(at, 4)? as u32;
                let json = (self.take_handle)(ty, index)?;
                self.out.push_str(&json);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Refused, decode, encode, root};
    use crate::description::{Kind, Type};
    use serde_json::{Map, Value, json};
    use std::path::Path;
    use thalweg::wire::describe;
    use thalweg_bindgen::hash::Describer;

    fn no_handle(_: &Type<'_>, _: &Value, path: &str) -> Result<u64, Refused> {
        panic!("{path} is not a handle")
    }

    fn message(text: &str, json: &Value) -> Result<Vec<u8>, Refused> {
        encode(&Type::parse(text).unwrap(), json, &mut no_handle)
    }

    fn json_of(text: &str, message: &[u8]) -> Value {
        let ty = Type::parse(text).unwrap();
        let at = root(message).unwrap();
        let json = decode(&ty, message, at, &mut |_, _| panic!("no handle"));
        let json = json.unwrap_or_else(|| panic!("not a {text}: {message:02x?}"));
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }

    fn unhex(hex: &str) -> Vec<u8> {
        super::hex(&json!(hex)).unwrap()
    }

    /// Expands `{"repeat": X, "count": N}` in an argument.
    fn expand(ty: &Type<'_>, json: &Value) -> Value {
        if let (Kind::Tuple(fields), Some(items)) = (&ty.kind, json.as_array()) {
            let pairs = fields.iter().zip(items);
            return pairs.map(|(field, item)| expand(&field.ty, item)).collect();
        }
        let Some(count) = json.get("repeat").and(json["count"].as_u64()) else {
            return json.clone();
        };
        let one = &json["repeat"];
        match (&ty.kind, one.as_str()) {
            (Kind::List(item), _) if !super::is_byte(item) => {
                Value::Array(vec![one.clone(); count as usize])
            }
            (_, Some(text)) => Value::String(text.repeat(count as usize)),
            _ => panic!("{json} is not a {}", ty.text),
        }
    }

    #[test]
    fn messages_of_the_scenarios_are_encoded_and_decoded() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance"));
        let package = thalweg_bindgen::parse(&folder.join("wit")).unwrap();
        let texts = Describer {
            types: &package.types,
            resources: &package.resources,
        };
        let file = std::fs::read_to_string(folder.join("scenarios.json")).unwrap();
        let scenarios: Value = serde_json::from_str(&file).unwrap();
        let steps = scenarios.as_array().unwrap().iter();
        let steps = steps.flat_map(|scenario| scenario["steps"].as_array().unwrap());
        let (mut arguments, mut replies) = (0, 0);
        for step in steps {
            let Some(name) = step["call"].as_str() else {
                continue;
            };
            let name = format!("conformance.{name}");
            let mut functions = package.functions.iter();
            let function = functions.find(|one| one.full_name == name).unwrap();
            let description = texts.describe_function(function);
            let lines: Vec<_> = description.split('\n').collect();
            if let Some(expected) = step["arguments"].as_str() {
                let params = Type::parse(lines[0]).unwrap();
                let Kind::Record(fields) = &params.kind else {
                    panic!("parameters are a record");
                };
                let given = step["params"].as_array();
                let given = given.into_iter().flatten();
                let object: Map<String, Value> = fields
                    .iter()
                    .zip(given)
                    .map(|(field, json)| (field.name.to_owned(), expand(&field.ty, json)))
                    .collect();
                let made = message(lines[0], &Value::Object(object.clone())).unwrap();
                assert_eq!(made, unhex(expected), "{name} {step}");
                assert_eq!(json_of(lines[0], &made), Value::Object(object), "{name}");
                describe::Type::parse(lines[0])
                    .unwrap()
                    .check(&made)
                    .unwrap();
                arguments += 1;
            }
            if let Some(reply) = step["reply"].as_str() {
                let (line, expected) = match step["ends"] == "error" {
                    true => (lines[2], &step["error"]),
                    false => (lines[1], &step["ok"]),
                };
                if !expected.is_null() {
                    let ty = Type::parse(line).unwrap();
                    let expected = expand(&ty, expected);
                    assert_eq!(json_of(line, &unhex(reply)), expected, "{name}");
                    replies += 1;
                }
            }
        }
        assert!(arguments > 100 && replies > 80, "{arguments} {replies}");
    }

    #[test]
    fn numbers_are_accepted_in_place_of_strings() {
        for (text, number, string) in [
            ("u64", json!(u64::MAX), json!("18446744073709551615")),
            ("s64", json!(i64::MIN), json!("-9223372036854775808")),
            ("f64", json!(1.5), json!("0x3ff8000000000000")),
            ("f64", json!(-3), json!("0xc008000000000000")),
            ("f32", json!(0.1), json!("0x3dcccccd")),
        ] {
            let made = message(text, &number).unwrap();
            assert_eq!(message(text, &string).unwrap(), made, "{text}");
            assert_eq!(json_of(text, &made), string);
        }
    }

    #[test]
    fn value_of_another_type_is_refused_with_its_path() {
        let record = "record{points:list<record{x:s8,name:string}>,maybe:option<u64>}";
        let point = |x: Value| json!({"points": [{"x": 1, "name": ""}, {"x": x, "name": ""}], "maybe": null});
        let deep = "option<option<tuple<list<enum{a,b}>,f32>>>";
        for (text, json, path, reason) in [
            ("bool", json!(1), "$", "expected true or false, found 1"),
            (
                record,
                json!([]),
                "$",
                "expected an object, found an array with 0 elements",
            ),
            (
                record,
                point(json!(128)),
                "$.points[1].x",
                "expected an integer from -128 to 127, found 128",
            ),
            (
                record,
                point(json!(1.0)),
                "$.points[1].x",
                "expected an integer from -128 to 127, found 1.0",
            ),
            (
                record,
                point(json!("1")),
                "$.points[1].x",
                "expected an integer from -128 to 127, found \"1\"",
            ),
            (
                record,
                json!({"points": []}),
                "$",
                "the field `maybe` is missing",
            ),
            (
                record,
                json!({"points": [], "maybe": null, "more": 1}),
                "$",
                "there is no field `more`",
            ),
            (
                record,
                json!({"points": [], "maybe": {"some": -1}}),
                "$.maybe.some",
                "expected an integer from 0 to 18446744073709551615, as a string or a number, found -1",
            ),
            (
                record,
                json!({"points": [], "maybe": 1}),
                "$.maybe",
                "expected null, or an object with `some`, found 1",
            ),
            (
                "u64",
                json!("01"),
                "$",
                "expected an integer from 0 to 18446744073709551615, as a string or a number, found \"01\"",
            ),
            (
                "u8",
                json!(256),
                "$",
                "expected an integer from 0 to 255, found 256",
            ),
            (
                "f32",
                json!(1e39),
                "$",
                "expected a number, or a string with 8 hex digits after `0x`, found 1e+39",
            ),
            (
                "f64",
                json!("0x3FF8000000000000"),
                "$",
                "expected a number, or a string with 16 hex digits after `0x`, found \"0x3FF8000000000000\"",
            ),
            (
                "char",
                json!("ab"),
                "$",
                "expected a string of one character, found \"ab\"",
            ),
            (
                "list<u8>",
                json!("abc"),
                "$",
                "expected a string of pairs of hex digits, found \"abc\"",
            ),
            (
                "list<u8,2>",
                json!("ab"),
                "$",
                "expected a string of pairs of hex digits, with 2 bytes, found \"ab\"",
            ),
            (
                "list<u16,2>",
                json!([1]),
                "$",
                "expected an array with 2 elements, found an array with 1 elements",
            ),
            (
                deep,
                json!({"some": {"some": [["a", "c"], 0]}}),
                "$.some.some[0][1]",
                "expected `a` or `b`, found \"c\"",
            ),
            (
                deep,
                json!({"some": 1, "more": 1}),
                "$",
                "expected null, or an object with `some`, found an object with {more, some}",
            ),
            (
                "result<u8,_>",
                json!({"ok": 1, "error": null}),
                "$",
                "expected an object with `ok` or `error`, found an object with {error, ok}",
            ),
            (
                "result<u8,_>",
                json!({"error": 1}),
                "$.error",
                "expected null, found 1",
            ),
            (
                "variant{a,b(u8)}",
                json!({"case": "c"}),
                "$",
                "expected an object with `case`, `a` or `b`, found an object with {case}",
            ),
            (
                "variant{a,b(u8)}",
                json!({"case": "b"}),
                "$",
                "expected an object with `case` and `value`, found an object with {case}",
            ),
            (
                "variant{a,b(u8)}",
                json!({"case": "a", "value": null}),
                "$",
                "expected an object with only `case`, found an object with {case, value}",
            ),
            (
                "flags{a,b}",
                json!(["b", "b"]),
                "$",
                "expected an array of different names, each `a` or `b`, found an array with 2 elements",
            ),
        ] {
            let refused = message(text, &json).expect_err(text);
            assert_eq!(
                (refused.path.as_str(), refused.reason.as_str()),
                (path, reason)
            );
        }
    }

    #[test]
    fn list_of_values_without_contents_is_bounded() {
        let many = Value::Array(vec![json!([]); 65_537]);
        let refused = message("list<tuple<>>", &many).unwrap_err();
        assert!(refused.reason.contains("65536"), "{refused}");
    }

    #[test]
    fn malformed_message_is_no_value() {
        let text = "record{name:string,letter:char,tag:enum{a}}";
        let value = json!({"name": "name", "letter": "x", "tag": "a"});
        let made = message(text, &value).unwrap();
        let ty = Type::parse(text).unwrap();
        let decode = |bytes: &[u8]| decode(&ty, bytes, 16, &mut |_, _| None);
        assert!(decode(&made).is_some());
        for size in 0..made.len() {
            assert_eq!(decode(&made[..size]), None, "{size}");
        }
        // The offset and the length of the text, the letter, the tag.
        for (at, byte) in [(19, 0xff), (23, 0xff), (26, 0x11), (28, 1)] {
            let mut broken = made.clone();
            broken[at] = byte;
            assert_eq!(decode(&broken), None, "{at}");
        }
    }
}
