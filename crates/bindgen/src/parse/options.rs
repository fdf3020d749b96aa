//! Applies the options of the policy file. `option_table` has checked their place and the type of
//! their value.

use crate::model::{
    Function, Limits, Type, TypeDef, TypeDefKind, TypeId, TypeKind, contains_handle,
    is_stream_or_future, resolve_alias, stream_fields,
};
use std::ops::RangeInclusive;
use toml_edit::Item;

/// The maximum of `max_queued_calls`.
const MAX_QUEUED_CALLS: u32 = 1_048_576;
/// The minimum of `notice_interval`. Shorter intervals only cost time.
const MIN_NOTICE_INTERVAL_NS: u64 = 1_000_000;
/// The maximum of `linger`.
const MAX_LINGER_NS: u64 = 1_000_000_000;

/// The range of `max_record_size`. With a smaller maximum, the segments of a stream would hold too
/// little. Two records of the largest size fit into the 2 GiB of a message.
const MAX_RECORD_SIZE: RangeInclusive<u64> = 64 << 10..=512 << 20;

/// Applies the option `name = item` to `function`.
///
/// # Errors
/// The reason why the function cannot have this option or value.
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
            check_limits(function)?;
        }
        "brief" => {
            function.options.is_brief = switch;
            if switch {
                check_brief(function)?;
            }
            check_limits(function)?;
        }
        // Read together with `overflow`.
        "conflation_key" => {}
        "idempotent" => function.options.is_idempotent = switch,
        "notice_interval" => {
            function.options.notice_interval_ns = item.as_str().map_or(0, nanoseconds);
            if function.options.notice_interval_ns < MIN_NOTICE_INTERVAL_NS {
                return Err("it must be at least 1ms".to_owned());
            }
            check_limits(function)?;
        }
        "timeout" => {
            function.options.timeout_ns = item.as_str().map_or(0, nanoseconds);
            check_limits(function)?;
        }
        "format" => {
            function.options.is_cbor = item.as_str() == Some("cbor");
            if function.options.is_cbor {
                check_values(types, "a function with the format CBOR", function)?;
            }
        }
        "linger" => {
            let linger_ns = item.as_str().map_or(0, nanoseconds);
            if linger_ns > MAX_LINGER_NS {
                return Err("it must be at most 1s".to_owned());
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
        other => unreachable!("`{other}` is not in the option table of functions"),
    }
    Ok(())
}

/// Converts a duration such as `250ms`, whose format is already checked.
fn nanoseconds(text: &str) -> u64 {
    // `s` comes last, because the other units end in `s` as well.
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

/// Applies the option `name = item` of the interface.
///
/// # Errors
/// The number is too large.
pub fn limit(limits: &mut Limits, name: &str, item: &Item) -> Result<(), String> {
    match (name, item.as_integer(), item.as_str()) {
        ("max_queued_calls", Some(calls), _) => {
            limits.max_queued_calls = u32::try_from(calls)
                .ok()
                .filter(|calls| *calls <= MAX_QUEUED_CALLS)
                .ok_or_else(|| format!("it must be at most {MAX_QUEUED_CALLS}"))?;
        }
        ("max_queued_bytes", _, Some(text)) => limits.max_queued_bytes = bytes(text),
        ("overflow", _, Some(what)) => limits.block_when_full = what == "block",
        _ => unreachable!("`{name}` is not in the option table of interfaces"),
    }
    Ok(())
}

/// The enums and variants in the comma-separated list `text`.
///
/// # Errors
/// A name in the list is not that of an enum or a variant.
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

/// The index of the conflation key among the fields of a stream's records.
///
/// # Errors
/// The reason why the field `name` cannot be the key.
pub fn conflation_key(types: &[TypeDef], function: &Function, name: &str) -> Result<usize, String> {
    let Some(fields) = stream_fields(types, function) else {
        return Err("the elements of the stream are not records".to_owned());
    };
    let Some(place) = fields.iter().position(|field| field.name == name) else {
        return Err(format!("the records of the stream have no field `{name}`"));
    };
    let ty = resolve_alias(types, &fields[place].ty);
    let is_key = match &ty.kind {
        TypeKind::List(item) => resolve_alias(types, item).kind == TypeKind::U8,
        TypeKind::Named(id) => matches!(types[id.0].kind, TypeDefKind::Enum(_)),
        TypeKind::String => true,
        kind => kind.scalar().is_some(),
    };
    match is_key {
        true => Ok(place),
        false => Err(format!(
            "`{name}` is not a scalar, an enum, a string or a `list<u8>`"
        )),
    }
}

/// Converts a size such as `64MiB`, whose format is already checked.
fn bytes(text: &str) -> u64 {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let read = |(unit, shift): (&str, u32)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number << shift)
    };
    units.into_iter().find_map(read).unwrap_or(u64::MAX)
}

/// An inline function runs on the caller's thread and cannot access the objects of the instance.
fn check_inline(types: &[TypeDef], function: &Function) -> Result<(), String> {
    check_values(types, "an inline function", function)
}

/// A brief function never waits, so it cannot read a stream.
fn check_brief(function: &Function) -> Result<(), String> {
    match function
        .params
        .iter()
        .find(|field| is_stream_or_future(&field.ty))
    {
        Some(field) => Err(format!(
            "a brief function never waits, but `{}` is a stream or a future",
            field.name
        )),
        None => Ok(()),
    }
}

/// Nothing can send a notice or end an inline call while it runs on the caller's thread. A brief
/// call is too short for notices.
fn check_limits(function: &Function) -> Result<(), String> {
    let options = &function.options;
    let refuse = |reason: &str| Err(reason.to_owned());
    if options.is_inline && (options.notice_interval_ns > 0 || options.timeout_ns > 0) {
        return refuse(
            "an inline function always runs to completion: it has no notices and no timeout",
        );
    }
    match (options.is_inline, options.is_brief) {
        (true, true) => refuse("a function is either inline or brief"),
        (_, true) if options.notice_interval_ns > 0 => {
            refuse("a brief function never waits: it has no notices")
        }
        _ => Ok(()),
    }
}

/// Checks that a function takes and returns only values.
///
/// # Errors
/// The parameter or result that is not a value.
pub fn check_values(types: &[TypeDef], what: &str, function: &Function) -> Result<(), String> {
    let is_handle = |ty: &Type| contains_handle(types, ty) || is_stream_or_future(ty);
    for field in &function.params {
        if is_handle(&field.ty) {
            let is = match is_stream_or_future(&field.ty) {
                true => "a stream or a future",
                false => "a resource of the service",
            };
            return Err(format!(
                "{what} takes only values, and `{}` is {is}",
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
            "{what} returns only values, no resource and no stream"
        ));
    }
    Ok(())
}
