//! What the options of a function mean, once their place and their value were checked.

use crate::model::{
    Function, Limits, Type, TypeDef, TypeDefKind, TypeId, TypeKind, contains_handle,
    is_stream_or_future, resolve_alias, stream_fields,
};
use std::ops::RangeInclusive;
use toml_edit::Item;

/// Most calls that may wait for one instance.
const MAX_QUEUED_CALLS: u32 = 1_048_576;
/// Shorter intervals are work for nobody.
const MIN_NOTICE_INTERVAL_NS: u64 = 1_000_000;
/// Longer waits are no reader's wish.
const MAX_LINGER_NS: u64 = 1_000_000_000;

/// What `max_record_size` may be. A smaller one would leave a segment of a stream with little to hold; two of the largest fit
/// into the 2 GiB of a message, and so does each behind another one.
const MAX_RECORD_SIZE: RangeInclusive<u64> = 64 << 10..=512 << 20;

/// Writes down what `name = item` says of `function`.
///
/// # Errors
/// Why it cannot be said of this function.
pub fn apply(
    types: &[TypeDef],
    function: &mut Function,
    name: &str,
    item: &Item,
) -> Result<(), String> {
    let switch = item.as_bool() == Some(true);
    match name {
        "inline" => {
            function.options.is_inline = switch;
            if switch {
                check_inline(types, function)?;
            }
            check_ends(function)?;
        }
        // With the policy.
        "conflation_key" => {}
        "idempotent" => function.options.is_idempotent = switch,
        "notice_interval" => {
            function.options.notice_interval_ns = item.as_str().map_or(0, nanoseconds);
            if function.options.notice_interval_ns < MIN_NOTICE_INTERVAL_NS {
                return Err("it must be 1ms at least".to_owned());
            }
            check_ends(function)?;
        }
        "timeout" => {
            function.options.timeout_ns = item.as_str().map_or(0, nanoseconds);
            check_ends(function)?;
        }
        "format" => {
            if item.as_str() == Some("cbor") {
                return Err(
                    "a call's message is flat; who wants its CBOR has it made, see docs/cbor.md"
                        .to_owned(),
                );
            }
        }
        "linger" => {
            let linger_ns = item.as_str().map_or(0, nanoseconds);
            if linger_ns > MAX_LINGER_NS {
                return Err("it must be 1s at most".to_owned());
            }
            if let Some(stream) = &mut function.stream {
                stream.linger_ns = linger_ns;
            }
        }
        "max_record_size" => {
            let largest = item.as_str().map_or(0, bytes);
            if !MAX_RECORD_SIZE.contains(&largest) {
                return Err("it must be \"64KiB\" to \"512MiB\"".to_owned());
            }
            if let Some(stream) = &mut function.stream {
                stream.max_record_size = largest as u32;
            }
        }
        other => unreachable!("`{other}` is no option of a function that is built"),
    }
    Ok(())
}

/// Of `250ms`, whose form was checked.
fn nanoseconds(text: &str) -> u64 {
    // `ms` and `us` end as `s` does.
    let units = [
        ("us", 1_000),
        ("ms", 1_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
    ];
    let read = |(unit, ns): (&str, u64)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number.saturating_mul(ns))
    };
    units.into_iter().find_map(read).unwrap_or(0)
}

/// Writes down what `name = item` says of the interface.
///
/// # Errors
/// The number is too large.
pub fn limit(limits: &mut Limits, name: &str, item: &Item) -> Result<(), String> {
    match (name, item.as_integer(), item.as_str()) {
        ("max_queued_calls", Some(calls), _) => {
            limits.max_queued_calls = u32::try_from(calls)
                .ok()
                .filter(|calls| *calls <= MAX_QUEUED_CALLS)
                .ok_or_else(|| format!("it must be {MAX_QUEUED_CALLS} at most"))?;
        }
        ("max_queued_bytes", _, Some(text)) => limits.max_queued_bytes = bytes(text),
        ("overflow", _, Some(what)) => limits.block_when_full = what == "block",
        _ => unreachable!("`{name}` is no option of an interface that is built"),
    }
    Ok(())
}

/// The enums and variants that `text` names, with commas between them.
///
/// # Errors
/// A name is that of no enum and no variant.
pub fn closed(types: &[TypeDef], text: &str) -> Result<Vec<TypeId>, String> {
    let id = |name: &str| {
        let can_grow =
            |kind: &TypeDefKind| matches!(kind, TypeDefKind::Enum(_) | TypeDefKind::Variant { .. });
        let mut types = types.iter();
        let place = types.position(|def| def.name == name && can_grow(&def.kind));
        place
            .map(TypeId)
            .ok_or_else(|| format!("there is no enum or variant `{name}`"))
    };
    text.split(',').map(|name| id(name.trim())).collect()
}

/// The place of a field by which records are conflated.
///
/// # Errors
/// Why they cannot be by that one.
pub fn conflated(types: &[TypeDef], function: &Function, name: &str) -> Result<usize, String> {
    let Some(fields) = stream_fields(types, function) else {
        return Err("the stream's elements are no records".to_owned());
    };
    let Some(place) = fields.iter().position(|field| field.name == name) else {
        return Err(format!("the stream's record has no field `{name}`"));
    };
    let ty = resolve_alias(types, &fields[place].ty);
    let is_key = match &ty.kind {
        TypeKind::List(item) => resolve_alias(types, item).kind == TypeKind::U8,
        TypeKind::Named(id) => matches!(types[id.0].kind, TypeDefKind::Enum(_)),
        TypeKind::String => true,
        kind => is_scalar(kind),
    };
    match is_key {
        true => Ok(place),
        false => Err(format!("`{name}` is no scalar, enum, string or `list<u8>`")),
    }
}

fn is_scalar(kind: &TypeKind) -> bool {
    use TypeKind::{Bool, Char, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    matches!(
        kind,
        Bool | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F32 | F64 | Char
    )
}

/// Of `64MiB`, whose form was checked.
fn bytes(text: &str) -> u64 {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let read = |(unit, shift): (&str, u32)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number << shift)
    };
    units.into_iter().find_map(read).unwrap_or(u64::MAX)
}

/// Nothing of the instance may be in it: what runs on the caller's thread cannot reach the actor's objects.
fn check_inline(types: &[TypeDef], function: &Function) -> Result<(), String> {
    check_values(types, "an inline function", function)
}

/// Nothing looks at a call from elsewhere while it runs on its caller's thread.
fn check_ends(function: &Function) -> Result<(), String> {
    let options = &function.options;
    match options.is_inline && (options.notice_interval_ns > 0 || options.timeout_ns > 0) {
        true => {
            Err("an inline function runs to its end: it has no notices and no timeout".to_owned())
        }
        false => Ok(()),
    }
}

/// Of a function that can take and give values alone.
///
/// # Errors
/// What else it takes or gives.
pub fn check_values(types: &[TypeDef], what: &str, function: &Function) -> Result<(), String> {
    let is_handle = |ty: &Type| contains_handle(types, ty) || is_stream_or_future(ty);
    for field in &function.params {
        if is_handle(&field.ty) {
            let is = match is_stream_or_future(&field.ty) {
                true => "sent up",
                false => "a resource of the service's",
            };
            return Err(format!(
                "{what} takes values alone, and `{}` is {is}",
                field.name
            ));
        }
    }
    if function
        .ok
        .iter()
        .chain(function.error.iter().flatten())
        .any(is_handle)
    {
        return Err(format!(
            "{what} gives values alone, no resource and no stream"
        ));
    }
    Ok(())
}
