# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""The types of thalweg:conformance@0.1.0."""

from __future__ import annotations

import builtins
import enum
from dataclasses import dataclass
from typing import TypeAlias

import thalweg


@dataclass(frozen=True, slots=True)
class Point:
    """Two numbers."""

    x: int
    """To the right."""
    y: int
    """Downwards."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """One field of each scalar, in an order that needs padding."""

    a_bool: bool
    a_u64: int
    a_u8: int
    a_u16: int
    a_s8: int
    a_u32: int
    a_s16: int
    a_f64: float
    a_char: str
    a_s64: int
    a_f32: float
    a_s32: int


@dataclass(frozen=True, slots=True)
class Keywords:
    """Names that are keywords somewhere."""

    type_: builtins.int
    match_: str
    async_: bool
    self: builtins.int
    crate: builtins.int
    super: builtins.int
    fn: builtins.int
    class_: str
    def_: str
    lambda_: str
    none: builtins.int | None
    return_: builtins.int
    struct: builtins.int
    int: builtins.int
    default: builtins.int
    register: builtins.int
    static: builtins.int
    import_: builtins.int
    from_: builtins.int
    yield_: builtins.int
    await_: builtins.int
    nullptr: builtins.int
    errno: builtins.int


@dataclass(frozen=True, slots=True)
class ShapeCircle:
    """A radius."""

    value: float


@dataclass(frozen=True, slots=True)
class ShapeLine:
    """From, to."""

    value: tuple[Point, Point]


@dataclass(frozen=True, slots=True)
class ShapeLabel:
    """A word."""

    value: str


@dataclass(frozen=True, slots=True)
class ShapePolygon:
    """Corners."""

    value: list[Point]


@dataclass(frozen=True, slots=True)
class ShapeNothing:
    """Without a payload."""


@dataclass(frozen=True, slots=True)
class ShapeStatic:
    """A keyword."""

    value: int


Shape: TypeAlias = (
    ShapeCircle | ShapeLine | ShapeLabel | ShapePolygon | ShapeNothing | ShapeStatic
)
"""Payloads of many sizes."""


class Color(enum.Enum):
    """Three of them."""

    RED = "red"
    GREEN = "green"
    BOOL = "bool"


class Rights(enum.Flag):
    """A byte of flags."""

    READ = 1 << 0
    WRITE = 1 << 1
    RECORD = 1 << 2


class Days(enum.Flag):
    """Two bytes of flags."""

    MONDAY = 1 << 0
    TUESDAY = 1 << 1
    WEDNESDAY = 1 << 2
    THURSDAY = 1 << 3
    FRIDAY = 1 << 4
    SATURDAY = 1 << 5
    SUNDAY = 1 << 6
    HOLIDAY = 1 << 7
    WORKDAY = 1 << 8


class Wide(enum.Flag):
    """As many flags as WIT allows."""

    B0 = 1 << 0
    B1 = 1 << 1
    B2 = 1 << 2
    B3 = 1 << 3
    B4 = 1 << 4
    B5 = 1 << 5
    B6 = 1 << 6
    B7 = 1 << 7
    B8 = 1 << 8
    B9 = 1 << 9
    B10 = 1 << 10
    B11 = 1 << 11
    B12 = 1 << 12
    B13 = 1 << 13
    B14 = 1 << 14
    B15 = 1 << 15
    B16 = 1 << 16
    B17 = 1 << 17
    B18 = 1 << 18
    B19 = 1 << 19
    B20 = 1 << 20
    B21 = 1 << 21
    B22 = 1 << 22
    B23 = 1 << 23
    B24 = 1 << 24
    B25 = 1 << 25
    B26 = 1 << 26
    B27 = 1 << 27
    B28 = 1 << 28
    B29 = 1 << 29
    B30 = 1 << 30
    B31 = 1 << 31


Names: TypeAlias = list[str]
"""Another name for a list."""


@dataclass(frozen=True, slots=True)
class Nested:
    """Lists and options in one another."""

    text: str
    bytes: builtins.bytes
    names: list[str]
    grid: list[list[int]]
    maybe: str | None
    twice: thalweg.Some[int | None] | None
    outcomes: list[thalweg.Ok[Point] | thalweg.Err[str]]
    pairs: list[tuple[str, builtins.bytes | None]]
    shapes: list[Shape]
    color: Color
    rights: Rights
    aliased: Names


Spot: TypeAlias = Point
"""Another name for a record."""


class Failure(thalweg.ServiceError):
    """A typed error."""


class FailureUnknown(Failure):
    """Nothing is known."""

    payload: None


class FailureCode(Failure):
    """A number."""

    payload: int


class FailureAt(Failure):
    """A text and where."""

    payload: tuple[str, Point]


@dataclass(frozen=True, slots=True)
class Item:
    """An element of a stream with tails of its own."""

    number: int
    name: str
    tags: list[str]
    blob: bytes | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    """Lists of a fixed length, in place."""

    flag: bool
    key: bytes
    place: list[float]
    names: list[str]
    grid: list[list[int]]
    colors: list[Color]
    maybe: list[str | None] | None
    corners: list[Point]


@dataclass(frozen=True, slots=True)
class Sample:
    """An element of a stream with numbers at several depths, and with what is no number."""

    number: int
    at: Point
    all: Scalars
    weight: float | None
    color: Color
    days: Days
    pair: tuple[int, int]
    name: str | None
    corners: list[Point]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two counters with a name."""

    name: str
    left: thalweg.Held
    right: thalweg.Held | None = None


class MaybeCounter(thalweg.ServiceError):
    """A counter, or none."""


class MaybeCounterOne(MaybeCounter):
    """One."""

    payload: thalweg.Held


class MaybeCounterSeveral(MaybeCounter):
    """Several."""

    payload: list[thalweg.Held]


class MaybeCounterNo(MaybeCounter):
    """None."""

    payload: None


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream with what belongs to it."""

    name: str
    numbers: thalweg.HeldStream[int, int]
    last: thalweg.HeldFuture[str] | None = None
    """Comes where there is one."""


class FeedException(thalweg.ServiceError):
    """The service's error `feed`."""

    payload: Feed
