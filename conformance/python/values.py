"""Converts values in JSON to and from the Python values of generated code.

What is expected where is read from the generated annotations.
"""

import dataclasses
import enum
import functools
import operator
import struct
import types
import typing
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Sequence
from typing import Any

import thalweg


def value(hint: Any, given: Any) -> Any:
    """Converts `given` from JSON to the type `hint`."""
    if typing.get_origin(hint) is Iterable:
        return iter(value(list[typing.get_args(hint)[0]], given))  # type: ignore[misc]
    origins = [typing.get_origin(part) for part in typing.get_args(hint)]
    if AsyncIterable in origins:
        given = value(typing.get_args(hint)[origins.index(Iterable)], given)
        return asynchronous(given)
    if isinstance(given, dict) and "repeat" in given:
        if typing.get_origin(hint) in (list, Sequence):
            given = [given["repeat"]] * given["count"]
        else:
            given = given["repeat"] * given["count"]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if thalweg.NoValue in parts:
            return future_value(parts, given, Awaitable in origins)
        if type(None) in parts:
            rest = functools.reduce(
                operator.or_, (p for p in parts if p is not type(None))
            )
            return None if given is None else value(rest, given["some"])
        if bytes in parts:
            return bytes.fromhex(given)
        if "case" in given:
            part = next(
                part
                for part in parts
                if part.__name__.endswith(class_name(given["case"]))
            )
            return case(part, given)
        name, inner = next(iter(given.items()))
        wrapper = thalweg.Ok if name == "ok" else thalweg.Err
        part = next(part for part in parts if typing.get_origin(part) is wrapper)
        return wrapper(value(typing.get_args(part)[0], inner))
    if origin is thalweg.OwnedStream:
        return [value(parts[0], item) for item in given]
    if origin is thalweg.OwnedFuture:
        return value(parts[0], given)
    if origin is thalweg.Some:
        return thalweg.Some(value(parts[0], given))
    if origin is tuple:
        return tuple(value(part, item) for part, item in zip(parts, given, strict=True))
    if origin in (list, Sequence):
        return [value(parts[0], item) for item in given]
    if hint is bytes:
        return bytes.fromhex(given)
    if hint is int:
        return int(given)
    if hint is float:
        bits = bytes.fromhex(given[2:])
        return struct.unpack(">f" if len(bits) == 4 else ">d", bits)[0]
    if isinstance(hint, type) and issubclass(hint, enum.Flag):
        return hint(sum(hint[constant(name)].value for name in given))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(given)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = typing.get_type_hints(hint)
        return hint(
            **{name: value(hints[name], given[kebab(name, given)]) for name in hints}
        )
    if isinstance(hint, type) and issubclass(hint, thalweg.ServiceError):
        part = next(
            part
            for part in hint.__subclasses__()
            if part.__name__.endswith(class_name(given["case"]))
        )
        return case(part, given)
    return given


def future_value(parts: tuple[Any, ...], given: Any, later: bool) -> Any:
    """A future parameter: the value, or an awaitable that returns it `later`."""
    if given is None:
        return thalweg.NoValue()
    kinds = [
        part
        for part in parts
        if part is not thalweg.NoValue and typing.get_origin(part) is not Awaitable
    ]
    came = value(functools.reduce(operator.or_, kinds), given["some"])

    async def give() -> Any:
        return came

    return give() if later else came


async def asynchronous(values: Iterable[Any]) -> AsyncIterator[Any]:
    for one in values:
        yield one


def named(kept: dict[str, Any], item: Any) -> Any:
    """The JSON value, with resources in place of their names."""
    if isinstance(item, list):
        return [named(kept, part) for part in item]
    if not isinstance(item, dict):
        return item
    if "resource" in item:
        return kept[item["resource"]]
    return {key: named(kept, part) for key, part in item.items()}


def case(part: Any, given: dict[str, Any]) -> Any:
    """A case of a variant: a class with at most one attribute."""
    hints = typing.get_type_hints(part)
    hint = hints.get("value", hints.get("payload"))
    return part(value(hint, given["value"])) if "value" in given else part()


def opened(given: Any, read: Any) -> Any:
    """A result with each stream replaced by its elements, and each future by its value.

    `read` returns the elements of a stream.
    """
    if isinstance(given, thalweg.OwnedStream):
        elements = read(given)
        return elements[0] if isinstance(given, thalweg.OwnedFuture) else elements
    if isinstance(given, (list, tuple)):
        return type(given)(opened(item, read) for item in given)
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        fields = [field.name for field in dataclasses.fields(given)]
        parts = {name: opened(getattr(given, name), read) for name in fields}
        return dataclasses.replace(given, **parts)
    return given


def class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace("_", "-").split("-"))


def constant(name: str) -> str:
    return name.replace("-", "_").upper()


def kebab(name: str, given: dict[str, Any]) -> str:
    """The name in WIT, without the escape of a keyword."""
    return next(
        key for key in given if key.replace("-", "_") in (name, name.rstrip("_"))
    )


def raised(hint: Any, json: Any) -> Any:
    """A typed error: an exception that is a case, or that contains a number."""
    if isinstance(json, dict):
        return value(hint, json)
    return thalweg.ServiceError(json)
