# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""The client of thalweg:conformance@0.1.0 for sync code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Protocol, Self

import thalweg

from . import _methods
from .types import (
    Color,
    Days,
    Failure,
    Feed,
    Fixed,
    Item,
    Keywords,
    MaybeCounter,
    Names,
    Nested,
    Pair,
    Point,
    Rights,
    Sample,
    Scalars,
    Shape,
    Spot,
    Wide,
)
from .views import ItemView, SampleView


class Counter(thalweg.Resource):
    """A number that is kept."""

    __slots__ = ()

    def add(self, amount: int, *, timeout: float | None = None) -> int:
        """Adds, and says what it is then."""
        return _methods.COUNTER_ADD.call(self, timeout, self, amount)

    def value(self, *, timeout: float | None = None) -> int:
        """What it is."""
        return _methods.COUNTER_VALUE.call(self, timeout, self)

    def value_later(self, *, timeout: float | None = None) -> int:
        """The same as an `async func`."""
        return _methods.COUNTER_VALUE_LATER.call(self, timeout, self)

    def steps(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """What it was after each of the last additions, `count` of them made now, of 1 each.

        Where its reader is slow, the writer waits; it holds 1048576 records.
        """
        return _methods.COUNTER_STEPS.call(self, timeout, self, count)


class Even(thalweg.Resource):
    """A resource whose constructor can fail."""

    __slots__ = ()

    def half(self, *, timeout: float | None = None) -> int:
        """Half of it."""
        return _methods.EVEN_HALF.call(self, timeout, self)


class Scale(thalweg.Resource):
    """A resource whose method takes and gives another."""

    __slots__ = ()

    def apply(self, counter: Counter, *, timeout: float | None = None) -> Counter:
        """A counter of the product."""
        return _methods.SCALE_APPLY.make(Counter, self, timeout, self, counter)


class Lease(thalweg.Resource):
    """What is made and ended while others are served."""

    __slots__ = ()

    def ms(self, *, timeout: float | None = None) -> int:
        """How long that is."""
        return _methods.LEASE_MS.call(self, timeout, self)

    def destroy(self, *, timeout: float | None = None) -> None:
        """Ends the `lease`, and waits until it has ended. It ends by itself where its handle is closed, and nobody waits then."""
        return _methods.LEASE_DESTROY.call(self, timeout, self)


class Oracle(Protocol):
    """What the service asks of its host.

    What a client's service asks of its host, while a thread waits for a call of it: give
    one to `open`. A function must not call that client.
    """

    def look_up(self, key: int) -> str:
        """`key` in words: even ones have some, odd ones are an error with the key.

        Raises `thalweg.ServiceError`.
        """
        ...

    def tell(self, words: list[str], at: int | None) -> int:
        """How many bytes the words have, all together, and `at` is added if it is there."""
        ...

    def nod(self) -> None:
        """Nothing, and nothing comes back."""
        ...


class Conformance(thalweg.Client):
    """What every language must do alike: each value type there and back, streams, resources, and every way in which a
    call can end.

    A client has an instance of the service of its own. Every call takes `timeout`, in
    seconds, and raises `thalweg.TimedOut` when it is over.
    """

    __slots__ = ()

    @classmethod
    def open(cls, path: str | PathLike[str], *, host: Oracle | None = None) -> Self:
        """Opens the library at `path` and makes a client of it.

        `host` answers what its service asks.

        Raises `OSError` where it cannot be loaded and `thalweg.VersionMismatch` where it does
        not fit this package.
        """
        return cls._open(_methods.PACKAGE, path, host)

    def echo_bool(self, value: bool, *, timeout: float | None = None) -> bool:
        """Calls `conformance.echo-bool`."""
        return _methods.ECHO_BOOL.call(self, timeout, value)

    def echo_u8(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u8`."""
        return _methods.ECHO_U8.call(self, timeout, value)

    def echo_u16(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u16`."""
        return _methods.ECHO_U16.call(self, timeout, value)

    def echo_u32(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u32`."""
        return _methods.ECHO_U32.call(self, timeout, value)

    def echo_u64(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u64`."""
        return _methods.ECHO_U64.call(self, timeout, value)

    def echo_s8(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s8`."""
        return _methods.ECHO_S8.call(self, timeout, value)

    def echo_s16(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s16`."""
        return _methods.ECHO_S16.call(self, timeout, value)

    def echo_s32(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s32`."""
        return _methods.ECHO_S32.call(self, timeout, value)

    def echo_s64(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s64`."""
        return _methods.ECHO_S64.call(self, timeout, value)

    def echo_f32(self, value: float, *, timeout: float | None = None) -> float:
        """Calls `conformance.echo-f32`."""
        return _methods.ECHO_F32.call(self, timeout, value)

    def echo_f64(self, value: float, *, timeout: float | None = None) -> float:
        """Calls `conformance.echo-f64`."""
        return _methods.ECHO_F64.call(self, timeout, value)

    def echo_char(self, value: str, *, timeout: float | None = None) -> str:
        """Calls `conformance.echo-char`."""
        return _methods.ECHO_CHAR.call(self, timeout, value)

    def echo_string(self, value: str, *, timeout: float | None = None) -> str:
        """Calls `conformance.echo-string`."""
        return _methods.ECHO_STRING.call(self, timeout, value)

    def echo_bytes(
        self,
        value: bytes | bytearray | memoryview,
        *,
        timeout: float | None = None,
    ) -> bytes:
        """Calls `conformance.echo-bytes`."""
        return _methods.ECHO_BYTES.call(self, timeout, value)

    def echo_bools(
        self,
        value: Sequence[bool],
        *,
        timeout: float | None = None,
    ) -> list[bool]:
        """Calls `conformance.echo-bools`."""
        return _methods.ECHO_BOOLS.call(self, timeout, value)

    def echo_numbers(
        self,
        value: Sequence[int],
        *,
        timeout: float | None = None,
    ) -> list[int]:
        """Calls `conformance.echo-numbers`."""
        return _methods.ECHO_NUMBERS.call(self, timeout, value)

    def echo_floats(
        self,
        value: Sequence[float],
        *,
        timeout: float | None = None,
    ) -> list[float]:
        """Calls `conformance.echo-floats`."""
        return _methods.ECHO_FLOATS.call(self, timeout, value)

    def echo_strings(
        self,
        value: Sequence[str],
        *,
        timeout: float | None = None,
    ) -> list[str]:
        """Calls `conformance.echo-strings`."""
        return _methods.ECHO_STRINGS.call(self, timeout, value)

    def echo_grid(
        self,
        value: Sequence[Sequence[int]],
        *,
        timeout: float | None = None,
    ) -> list[list[int]]:
        """Calls `conformance.echo-grid`."""
        return _methods.ECHO_GRID.call(self, timeout, value)

    def echo_points(
        self,
        value: Sequence[Point],
        *,
        timeout: float | None = None,
    ) -> list[Point]:
        """Calls `conformance.echo-points`."""
        return _methods.ECHO_POINTS.call(self, timeout, value)

    def echo_option(
        self,
        value: str | None = None,
        *,
        timeout: float | None = None,
    ) -> str | None:
        """Calls `conformance.echo-option`."""
        return _methods.ECHO_OPTION.call(self, timeout, value)

    def echo_option_twice(
        self,
        value: thalweg.Some[int | None] | None = None,
        *,
        timeout: float | None = None,
    ) -> thalweg.Some[int | None] | None:
        """Calls `conformance.echo-option-twice`."""
        return _methods.ECHO_OPTION_TWICE.call(self, timeout, value)

    def echo_result(
        self,
        value: tuple[thalweg.Ok[int] | thalweg.Err[str]],
        *,
        timeout: float | None = None,
    ) -> tuple[thalweg.Ok[int] | thalweg.Err[str]]:
        """Calls `conformance.echo-result`."""
        return _methods.ECHO_RESULT.call(self, timeout, value)

    def echo_result_ok(
        self,
        value: Sequence[thalweg.Ok[int] | thalweg.Err[None]],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[int] | thalweg.Err[None]]:
        """Calls `conformance.echo-result-ok`."""
        return _methods.ECHO_RESULT_OK.call(self, timeout, value)

    def echo_result_error(
        self,
        value: Sequence[thalweg.Ok[None] | thalweg.Err[str]],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[None] | thalweg.Err[str]]:
        """Calls `conformance.echo-result-error`."""
        return _methods.ECHO_RESULT_ERROR.call(self, timeout, value)

    def echo_result_bare(
        self,
        value: Sequence[thalweg.Ok[None] | thalweg.Err[None]],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[None] | thalweg.Err[None]]:
        """Calls `conformance.echo-result-bare`."""
        return _methods.ECHO_RESULT_BARE.call(self, timeout, value)

    def echo_tuple(
        self,
        value: tuple[int, str, float, str | None],
        *,
        timeout: float | None = None,
    ) -> tuple[int, str, float, str | None]:
        """Calls `conformance.echo-tuple`."""
        return _methods.ECHO_TUPLE.call(self, timeout, value)

    def echo_point(self, value: Point, *, timeout: float | None = None) -> Point:
        """Calls `conformance.echo-point`."""
        return _methods.ECHO_POINT.call(self, timeout, value)

    def echo_spot(self, value: Point, *, timeout: float | None = None) -> Spot:
        """Calls `conformance.echo-spot`."""
        return _methods.ECHO_SPOT.call(self, timeout, value)

    def echo_scalars(self, value: Scalars, *, timeout: float | None = None) -> Scalars:
        """Calls `conformance.echo-scalars`."""
        return _methods.ECHO_SCALARS.call(self, timeout, value)

    def echo_nested(self, value: Nested, *, timeout: float | None = None) -> Nested:
        """Calls `conformance.echo-nested`."""
        return _methods.ECHO_NESTED.call(self, timeout, value)

    def echo_keywords(
        self,
        value: Keywords,
        *,
        timeout: float | None = None,
    ) -> Keywords:
        """Calls `conformance.echo-keywords`."""
        return _methods.ECHO_KEYWORDS.call(self, timeout, value)

    def echo_shape(self, value: Shape, *, timeout: float | None = None) -> Shape:
        """Calls `conformance.echo-shape`."""
        return _methods.ECHO_SHAPE.call(self, timeout, value)

    def echo_shapes(
        self,
        value: Sequence[Shape],
        *,
        timeout: float | None = None,
    ) -> list[Shape]:
        """Calls `conformance.echo-shapes`."""
        return _methods.ECHO_SHAPES.call(self, timeout, value)

    def echo_color(self, value: Color, *, timeout: float | None = None) -> Color:
        """Calls `conformance.echo-color`."""
        return _methods.ECHO_COLOR.call(self, timeout, value)

    def echo_colors(
        self,
        value: Sequence[Color],
        *,
        timeout: float | None = None,
    ) -> list[Color]:
        """Calls `conformance.echo-colors`."""
        return _methods.ECHO_COLORS.call(self, timeout, value)

    def echo_rights(self, value: Rights, *, timeout: float | None = None) -> Rights:
        """Calls `conformance.echo-rights`."""
        return _methods.ECHO_RIGHTS.call(self, timeout, value)

    def echo_days(self, value: Days, *, timeout: float | None = None) -> Days:
        """Calls `conformance.echo-days`."""
        return _methods.ECHO_DAYS.call(self, timeout, value)

    def echo_wide(self, value: Wide, *, timeout: float | None = None) -> Wide:
        """Calls `conformance.echo-wide`."""
        return _methods.ECHO_WIDE.call(self, timeout, value)

    def echo_names(
        self,
        value: Sequence[str],
        *,
        timeout: float | None = None,
    ) -> Names:
        """Calls `conformance.echo-names`."""
        return _methods.ECHO_NAMES.call(self, timeout, value)

    def echo_failure(self, value: Failure, *, timeout: float | None = None) -> Failure:
        """Calls `conformance.echo-failure`."""
        return _methods.ECHO_FAILURE.call(self, timeout, value)

    def several(
        self,
        type_: int,
        match_: str,
        list: Sequence[int],
        bool: Point | None = None,
        *,
        timeout: float | None = None,
    ) -> tuple[int, str, list[int], Point | None]:
        """Several parameters, keywords among them."""
        return _methods.SEVERAL.call(self, timeout, type_, match_, list, bool)

    def nothing(self, *, timeout: float | None = None) -> None:
        """No parameter, no result."""
        return _methods.NOTHING.call(self, timeout)

    def count(
        self,
        first: int,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """`count` numbers from `first` on.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.COUNT.call(self, timeout, first, count)

    def items(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Item, ItemView]:
        """`count` items: number i, name `item i`, i % 3 tags, a blob where i is even.

        Where its reader is slow, the writer waits; it holds 256 records.

        Raises `Failure`.
        """
        return _methods.ITEMS.call(self, timeout, count)

    def latest(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """`count` numbers from 0 on, as fast as it goes; a slow reader gets the newest.

        Where its reader is slow, a newer record replaces the one that waits, which is counted.
        """
        return _methods.LATEST.call(self, timeout, count)

    def breaks(
        self,
        after: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """`after` numbers from 0 on, then the service panics in the middle of the stream.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.BREAKS.call(self, timeout, after)

    def endless(self, *, timeout: float | None = None) -> thalweg.Stream[int, int]:
        """Numbers without an end, until the stream is closed or the call's client goes.

        Where its reader is slow, the writer waits; it holds 64 records.
        """
        return _methods.ENDLESS.call(self, timeout)

    def running(self, *, timeout: float | None = None) -> int:
        """How many of the streams of `endless` still run."""
        return _methods.RUNNING.call(self, timeout)

    def fail(self, how: Failure | None = None, *, timeout: float | None = None) -> int:
        """Fails as it is told to; succeeds with 7 where it is told nothing.

        Raises `Failure`.
        """
        return _methods.FAIL.call(self, timeout, how)

    def fail_later(
        self,
        how: Failure | None = None,
        *,
        timeout: float | None = None,
    ) -> int:
        """The same as an `async func`.

        Raises `Failure`.
        """
        return _methods.FAIL_LATER.call(self, timeout, how)

    def fail_bare(self, fails: bool, *, timeout: float | None = None) -> None:
        """Neither side has anything in it.

        Raises `thalweg.ServiceError`.
        """
        return _methods.FAIL_BARE.call(self, timeout, fails)

    def panic(self, message: str, *, timeout: float | None = None) -> int:
        """Panics with this message."""
        return _methods.PANIC.call(self, timeout, message)

    def panic_later(self, message: str, *, timeout: float | None = None) -> int:
        """Panics with this message in an actor of its own."""
        return _methods.PANIC_LATER.call(self, timeout, message)

    def never(
        self,
        *,
        timeout: float | None = None,
        on_notice: Callable[[float], object] | None = None,
    ) -> None:
        """Never ends, until it is cancelled.

        `on_notice` is called each 0.001 s while the call runs and is waited for, with the
        seconds since it was made. What it raises cancels the call, which raises it.
        """
        return _methods.NEVER.call(self, timeout, on_notice=on_notice)

    def sleep(self, milliseconds: int, *, timeout: float | None = None) -> int:
        """Ends after so many milliseconds with that number."""
        return _methods.SLEEP.call(self, timeout, milliseconds)

    def counter(self, start: int, *, timeout: float | None = None) -> Counter:
        """Begins at `start`."""
        return _methods.COUNTER.make(Counter, self, timeout, start)

    def counter_sum(
        self,
        left: Counter,
        right: Counter,
        *,
        timeout: float | None = None,
    ) -> Counter:
        """A new one: the sum of both."""
        return _methods.COUNTER_SUM.make(Counter, self, timeout, left, right)

    def counter_finish(self, counter: Counter, *, timeout: float | None = None) -> int:
        """Ends it and says what it was."""
        return _methods.COUNTER_FINISH.call(self, timeout, counter)

    def even(self, value: int, *, timeout: float | None = None) -> Even:
        """Fails where `value` is odd.

        Raises `Failure`.
        """
        return _methods.EVEN.make(Even, self, timeout, value)

    def counters(self, *, timeout: float | None = None) -> int:
        """How many counters live."""
        return _methods.COUNTERS.call(self, timeout)

    def echo_key(
        self,
        value: bytes | bytearray | memoryview,
        *,
        timeout: float | None = None,
    ) -> bytes:
        """Calls `conformance.echo-key`."""
        return _methods.ECHO_KEY.call(self, timeout, value)

    def echo_three(
        self,
        value: Sequence[int],
        *,
        timeout: float | None = None,
    ) -> list[int]:
        """Calls `conformance.echo-three`."""
        return _methods.ECHO_THREE.call(self, timeout, value)

    def echo_fixed(self, value: Fixed, *, timeout: float | None = None) -> Fixed:
        """Calls `conformance.echo-fixed`."""
        return _methods.ECHO_FIXED.call(self, timeout, value)

    def echo_keys(
        self,
        value: Sequence[bytes | bytearray | memoryview],
        *,
        timeout: float | None = None,
    ) -> list[bytes]:
        """Calls `conformance.echo-keys`."""
        return _methods.ECHO_KEYS.call(self, timeout, value)

    def many(
        self,
        a: int,
        b: int,
        c: int,
        d: int,
        e: int,
        f: str,
        g: int,
        h: int,
        i: bytes | bytearray | memoryview,
        j: int,
        k: int,
        n: str | None,
        counter: Counter,
        m: int,
        *,
        timeout: float | None = None,
    ) -> tuple[int, str]:
        """More parameters than a tuple has fields: the sum of the numbers, and the texts one after the other."""
        return _methods.MANY.call(
            self,
            timeout,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            i,
            j,
            k,
            n,
            counter,
            m,
        )

    def twice(self, value: int, *, timeout: float | None = None) -> int:
        """Twice the number, on the caller's thread."""
        return _methods.TWICE.call(self, timeout, value)

    def fail_here(
        self,
        how: Failure | None = None,
        *,
        timeout: float | None = None,
    ) -> int:
        """As `fail`, on the caller's thread.

        Raises `Failure`.
        """
        return _methods.FAIL_HERE.call(self, timeout, how)

    def panic_here(self, message: str, *, timeout: float | None = None) -> int:
        """Panics with this message, on the caller's thread."""
        return _methods.PANIC_HERE.call(self, timeout, message)

    def ask(self, key: int, *, timeout: float | None = None) -> str:
        """Looks up in the host's oracle, and gives what it said: its text, or the number of the code of how else it ended.

        Raises `thalweg.ServiceError`.
        """
        return _methods.ASK.call(self, timeout, key)

    def ask_later(self, key: int, *, timeout: float | None = None) -> str:
        """The same as an `async func`.

        Raises `thalweg.ServiceError`.
        """
        return _methods.ASK_LATER.call(self, timeout, key)

    def tell(
        self,
        words: Sequence[str],
        at: int | None = None,
        *,
        timeout: float | None = None,
    ) -> int:
        """Tells the host's oracle, and gives what it said.

        Raises `thalweg.ServiceError`.
        """
        return _methods.TELL.call(self, timeout, words, at)

    def samples(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Sample, SampleView]:
        """`count` samples: number i at (i, -i), every field of `all` made of i, a weight and a name where i is even, i % 4 corners.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.SAMPLES.call(self, timeout, count)

    def shapes(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Shape, Shape]:
        """`count` shapes: a variant as an element.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.SHAPES.call(self, timeout, count)

    def give_counters(
        self,
        start: int,
        count: int,
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Held]:
        """`count` counters, the first begins at `start`, each other one further."""
        return _methods.GIVE_COUNTERS.call(self, timeout, start, count)

    def total(
        self,
        counters: Sequence[thalweg.Held],
        *,
        timeout: float | None = None,
    ) -> int:
        """The sum of all, which are gone then."""
        return _methods.TOTAL.call(self, timeout, counters)

    def first_of(
        self,
        counter: thalweg.Held | None = None,
        *,
        timeout: float | None = None,
    ) -> int | None:
        """What it is, if there is one; it is gone then."""
        return _methods.FIRST_OF.call(self, timeout, counter)

    def swap(self, value: Pair, *, timeout: float | None = None) -> Pair:
        """The same pair; left and right change places where there is a right one.

        Raises `MaybeCounter`.
        """
        return _methods.SWAP.call(self, timeout, value)

    def refuse(self, value: MaybeCounter, *, timeout: float | None = None) -> None:
        """Fails with what it is given, which is the caller's again.

        Raises `MaybeCounter`.
        """
        return _methods.REFUSE.call(self, timeout, value)

    def later(
        self,
        milliseconds: int,
        text: str,
        *,
        timeout: float | None = None,
    ) -> thalweg.Future[str]:
        """A text that comes later: after so many milliseconds; with 0, at once."""
        return thalweg.Future(_methods.LATER.call(self, timeout, milliseconds, text))

    def never_comes(
        self,
        message: str | None = None,
        *,
        timeout: float | None = None,
    ) -> thalweg.Future[Point]:
        """A point that never comes: the service drops it, or panics with this message.

        Raises `Failure`.
        """
        return thalweg.Future(_methods.NEVER_COMES.call(self, timeout, message))

    def scale(self, by: int, *, timeout: float | None = None) -> Scale:
        """Multiplies by `by`."""
        return _methods.SCALE.make(Scale, self, timeout, by)

    def ticks(self, *, timeout: float | None = None) -> thalweg.Stream[int, int]:
        """Numbers that come when `tick` and `mark` are called, until `end-ticks`.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.TICKS.call(self, timeout)

    def tick(self, count: int, *, timeout: float | None = None) -> int:
        """Sends each stream of `ticks` its next `count` numbers, which begin at 0, and says how many streams read."""
        return _methods.TICK.call(self, timeout, count)

    def mark(self, number: int, *, timeout: float | None = None) -> int:
        """Sends each stream of `ticks` this number on its control lane."""
        return _methods.MARK.call(self, timeout, number)

    def end_ticks(self, *, timeout: float | None = None) -> None:
        """Every stream of `ticks` ends."""
        return _methods.END_TICKS.call(self, timeout)

    def drops_newest(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """The numbers from 0 on, `count` of them, all written before anybody reads. A full stream drops its newest.

        Where its reader is slow, new records are dropped and counted; it holds 64.
        """
        return _methods.DROPS_NEWEST.call(self, timeout, count)

    def drops_oldest(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """The same; a full stream drops its oldest.

        Where its reader is slow, the oldest records are dropped and counted; it holds 64.
        """
        return _methods.DROPS_OLDEST.call(self, timeout, count)

    def refuses(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """The same; a full stream refuses, and the service throws away what was refused and says so.

        Where its reader is slow, the writer is refused; it holds 64 records.
        """
        return _methods.REFUSES.call(self, timeout, count)

    def waiting(self, *, timeout: float | None = None) -> int:
        """How many calls of `never`, of `held-up` and of `limited` are under way."""
        return _methods.WAITING.call(self, timeout)

    def looked_up(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[str, str]:
        """What the host's oracle says of the even keys from 0 on, `count` of them: each is looked up when the one before was sent.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.LOOKED_UP.call(self, timeout, count)

    def lease(self, ms: int, *, timeout: float | None = None) -> Lease:
        """Is there after `ms` milliseconds; fails where that is odd. Its end takes as long.

        Raises `Failure`.
        """
        return _methods.LEASE.make(Lease, self, timeout, ms)

    def leases(self, *, timeout: float | None = None) -> tuple[int, int]:
        """How many leases are there or end; how many have ended well."""
        return _methods.LEASES.call(self, timeout)

    def sum_of(
        self,
        numbers: Iterable[int],
        *,
        timeout: float | None = None,
        on_notice: Callable[[float], object] | None = None,
    ) -> tuple[int, int]:
        """How many numbers came, and their sum; the number of the code of how else their stream ended.

        `numbers` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.

        `on_notice` is called each 0.001 s while the call runs and is waited for, with the
        seconds since it was made. What it raises cancels the call, which raises it.

        Raises `thalweg.ServiceError`.
        """
        return _methods.SUM_OF.call(self, timeout, numbers, on_notice=on_notice)

    def names_of(self, items: Iterable[Item], *, timeout: float | None = None) -> str:
        """The names of the items, one after the other.

        `items` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return _methods.NAMES_OF.call(self, timeout, items)

    def first_numbers(
        self,
        count: int,
        numbers: Iterable[int],
        *,
        timeout: float | None = None,
    ) -> list[int]:
        """The first `count` numbers; then the stream is closed.

        `numbers` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return _methods.FIRST_NUMBERS.call(self, timeout, count, numbers)

    def words_first(
        self,
        numbers: Iterable[int],
        words: Iterable[str],
        *,
        timeout: float | None = None,
    ) -> tuple[str, int]:
        """The words one after the other, which are read first, and the sum of the numbers.

        `numbers` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.

        `words` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return _methods.WORDS_FIRST.call(self, timeout, numbers, words)

    def add_all(
        self,
        counter: Counter,
        amounts: Iterable[int],
        *,
        timeout: float | None = None,
    ) -> int:
        """Adds all, and says what it is then.

        `amounts` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return _methods.ADD_ALL.call(self, timeout, counter, amounts)

    def hear(self, text: thalweg.NoValue | str, *, timeout: float | None = None) -> str:
        """The text when it comes; the number of the code of why none does.

        `text` is a value, or `thalweg.NoValue()` where there is none.

        Raises `thalweg.ServiceError`.
        """
        return _methods.HEAR.call(self, timeout, text)

    def beats_of(self, beats: Iterable[None], *, timeout: float | None = None) -> int:
        """How many times there was nothing.

        `beats` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return _methods.BEATS_OF.call(self, timeout, beats)

    def comes(
        self,
        signal: thalweg.NoValue | None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Ends when it comes; the number of the code of why it does not.

        `signal` is a value, or `thalweg.NoValue()` where there is none.

        Raises `thalweg.ServiceError`.
        """
        return _methods.COMES.call(self, timeout, signal)

    def beats(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[None, None]:
        """Nothing, so many times.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.BEATS.call(self, timeout, count)

    def signal(
        self,
        milliseconds: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Future[None]:
        """Nothing, later: after so many milliseconds; with 0, at once."""
        return thalweg.Future(_methods.SIGNAL.call(self, timeout, milliseconds))

    def ask_all(
        self,
        keys: Iterable[int],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[str] | thalweg.Err[int]]:
        """What the host's oracle says of each key, which is looked up before the next one is read.

        `keys` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return _methods.ASK_ALL.call(self, timeout, keys)

    def held_up(
        self,
        *,
        timeout: float | None = None,
        on_notice: Callable[[float], object] | None = None,
    ) -> None:
        """Ends when `let-go` is called.

        `on_notice` is called each 0.001 s while the call runs and is waited for, with the
        seconds since it was made. What it raises cancels the call, which raises it.
        """
        return _methods.HELD_UP.call(self, timeout, on_notice=on_notice)

    def let_go(self, *, timeout: float | None = None) -> None:
        """Lets go of each call of `held-up` that is under way."""
        return _methods.LET_GO.call(self, timeout)

    def bits(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[bool, bool]:
        """Whether each number from 0 on is odd, `count` of them.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.BITS.call(self, timeout, count)

    def letters(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[str, str]:
        """`a`, `ß`, `☃` and `𐍈`, again and again.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.LETTERS.call(self, timeout, count)

    def maybes(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[str | None, str | None]:
        """The even ones of the numbers from 0 on as texts, and of the odd ones nothing.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.MAYBES.call(self, timeout, count)

    def couples(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[tuple[int, str], tuple[int, str]]:
        """The numbers from 0 on, the low byte and as text.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.COUPLES.call(self, timeout, count)

    def rows(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[list[int], list[int]]:
        """So many of the numbers from 0 on: none, one, two and three, again and again.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.ROWS.call(self, timeout, count)

    def outcomes(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[
        thalweg.Ok[int] | thalweg.Err[str],
        thalweg.Ok[int] | thalweg.Err[str],
    ]:
        """The even ones of the numbers from 0 on, and `no` and the number for the odd ones.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.OUTCOMES.call(self, timeout, count)

    def by_name(
        self,
        names: int,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Item, ItemView]:
        """Items from 0 on, `count` of them, all written before anybody reads. They have `names` names in turn, and a newer one
        replaces the one of its name.

        Where its reader is slow, a newer record replaces the one that waits and has the same `name`, which is counted; it holds 64, each with another one.
        """
        return _methods.BY_NAME.call(self, timeout, names, count)

    def feeds(self, count: int, *, timeout: float | None = None) -> list[Feed]:
        """So many feeds, each named by its place. Its numbers are those below that; those at odd places have a last word, which is the name.

        For each stream in what it gives: where its reader is slow, the writer waits; it holds 64 records.
        """
        return _methods.FEEDS.call(self, timeout, count)

    def endless_feed(self, *, timeout: float | None = None) -> Feed:
        """One whose numbers go on until nobody reads them; `running` counts it.

        For each stream in what it gives: where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.ENDLESS_FEED.call(self, timeout)

    def mixed(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> tuple[thalweg.HeldStream[None, None], thalweg.HeldFuture[Point]]:
        """So many times nothing, and a point at `count`. Where that is 0, it fails with a feed of three numbers.

        For each stream in what it gives: where its reader is slow, the writer waits; it holds 8192 records.

        Raises `FeedException`.
        """
        return _methods.MIXED.call(self, timeout, count)

    def limited(self, *, timeout: float | None = None) -> None:
        """Answers after a minute. A call of it has 20 ms, says the policy file.

        A call has 20ms at most, whatever deadline its caller gives.
        """
        return _methods.LIMITED.call(self, timeout)

    def stops(
        self,
        count: int,
        how: str,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """`count` numbers from 0 on. There are two writers, and `how` is what becomes of them: `finish`, both finish; `one`, one of them
        finishes and the other is dropped; `drop`, both are dropped; `fail`, the stream fails with `code(count)`.

        Where its reader is slow, the writer waits; it holds 8192 records.

        Raises `Failure`.
        """
        return _methods.STOPS.call(self, timeout, count, how)

    def rows_of(
        self,
        count: int,
        size: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[str, str]:
        """`count` texts of one letter, then one of `size` letters, then another of one letter. A record has 64 KiB at most, says the policy file;
        where one is refused the writer is dropped.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.ROWS_OF.call(self, timeout, count, size)

    def fails_to_come(
        self,
        code: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Future[Point]:
        """A point that does not come: the future fails with `code(code)`.

        Raises `Failure`.
        """
        return thalweg.Future(_methods.FAILS_TO_COME.call(self, timeout, code))
