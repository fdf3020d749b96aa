# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""The client of thalweg:conformance@0.1.0 for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
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


class AsyncCounter(thalweg.AsyncResource):
    """A number that is kept."""

    __slots__ = ()

    async def add(self, amount: int, *, timeout: float | None = None) -> int:
        """Adds, and says what it is then."""
        return await _methods.COUNTER_ADD.start(self, timeout, self, amount)

    async def value(self, *, timeout: float | None = None) -> int:
        """What it is."""
        return await _methods.COUNTER_VALUE.start(self, timeout, self)

    async def value_later(self, *, timeout: float | None = None) -> int:
        """The same as an `async func`."""
        return await _methods.COUNTER_VALUE_LATER.start(self, timeout, self)

    async def steps(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """What it was after each of the last additions, `count` of them made now, of 1 each.

        Where its reader is slow, the writer waits; it holds 1048576 records.
        """
        return await _methods.COUNTER_STEPS.start(self, timeout, self, count)


class AsyncEven(thalweg.AsyncResource):
    """A resource whose constructor can fail."""

    __slots__ = ()

    async def half(self, *, timeout: float | None = None) -> int:
        """Half of it."""
        return await _methods.EVEN_HALF.start(self, timeout, self)


class AsyncScale(thalweg.AsyncResource):
    """A resource whose method takes and gives another."""

    __slots__ = ()

    async def apply(
        self,
        counter: AsyncCounter,
        *,
        timeout: float | None = None,
    ) -> AsyncCounter:
        """A counter of the product."""
        return await _methods.SCALE_APPLY.start_make(
            AsyncCounter,
            self,
            timeout,
            self,
            counter,
        )


class AsyncLease(thalweg.AsyncResource):
    """What is made and ended while others are served."""

    __slots__ = ()

    async def ms(self, *, timeout: float | None = None) -> int:
        """How long that is."""
        return await _methods.LEASE_MS.start(self, timeout, self)

    async def destroy(self, *, timeout: float | None = None) -> None:
        """Ends the `lease`, and waits until it has ended. It ends by itself where its handle is closed, and nobody waits then."""
        return await _methods.LEASE_DESTROY.start(self, timeout, self)


class AsyncOracle(Protocol):
    """What the service asks of its host.

    What a client's service asks of its host: give one to `open`. Its functions run on the
    loop that awaits the call.
    """

    async def look_up(self, key: int) -> str:
        """`key` in words: even ones have some, odd ones are an error with the key.

        Raises `thalweg.ServiceError`.
        """
        ...

    async def tell(self, words: list[str], at: int | None) -> int:
        """How many bytes the words have, all together, and `at` is added if it is there."""
        ...

    async def nod(self) -> None:
        """Nothing, and nothing comes back."""
        ...


class AsyncConformance(thalweg.AsyncClient):
    """What every language must do alike: each value type there and back, streams, resources, and every way in which a
    call can end.

    A client has an instance of the service of its own. Every call takes `timeout`, in
    seconds, and raises `thalweg.TimedOut` when it is over.
    """

    __slots__ = ()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        host: AsyncOracle | None = None,
    ) -> Self:
        """Opens the library at `path` and makes a client of it.

        `host` answers what its service asks.

        Raises `OSError` where it cannot be loaded and `thalweg.VersionMismatch` where it does
        not fit this package.
        """
        return cls._open(_methods.PACKAGE, path, host)

    async def echo_bool(self, value: bool, *, timeout: float | None = None) -> bool:
        """Calls `conformance.echo-bool`."""
        return await _methods.ECHO_BOOL.start(self, timeout, value)

    async def echo_u8(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u8`."""
        return await _methods.ECHO_U8.start(self, timeout, value)

    async def echo_u16(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u16`."""
        return await _methods.ECHO_U16.start(self, timeout, value)

    async def echo_u32(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u32`."""
        return await _methods.ECHO_U32.start(self, timeout, value)

    async def echo_u64(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-u64`."""
        return await _methods.ECHO_U64.start(self, timeout, value)

    async def echo_s8(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s8`."""
        return await _methods.ECHO_S8.start(self, timeout, value)

    async def echo_s16(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s16`."""
        return await _methods.ECHO_S16.start(self, timeout, value)

    async def echo_s32(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s32`."""
        return await _methods.ECHO_S32.start(self, timeout, value)

    async def echo_s64(self, value: int, *, timeout: float | None = None) -> int:
        """Calls `conformance.echo-s64`."""
        return await _methods.ECHO_S64.start(self, timeout, value)

    async def echo_f32(self, value: float, *, timeout: float | None = None) -> float:
        """Calls `conformance.echo-f32`."""
        return await _methods.ECHO_F32.start(self, timeout, value)

    async def echo_f64(self, value: float, *, timeout: float | None = None) -> float:
        """Calls `conformance.echo-f64`."""
        return await _methods.ECHO_F64.start(self, timeout, value)

    async def echo_char(self, value: str, *, timeout: float | None = None) -> str:
        """Calls `conformance.echo-char`."""
        return await _methods.ECHO_CHAR.start(self, timeout, value)

    async def echo_string(self, value: str, *, timeout: float | None = None) -> str:
        """Calls `conformance.echo-string`."""
        return await _methods.ECHO_STRING.start(self, timeout, value)

    async def echo_bytes(
        self,
        value: bytes | bytearray | memoryview,
        *,
        timeout: float | None = None,
    ) -> bytes:
        """Calls `conformance.echo-bytes`."""
        return await _methods.ECHO_BYTES.start(self, timeout, value)

    async def echo_bools(
        self,
        value: Sequence[bool],
        *,
        timeout: float | None = None,
    ) -> list[bool]:
        """Calls `conformance.echo-bools`."""
        return await _methods.ECHO_BOOLS.start(self, timeout, value)

    async def echo_numbers(
        self,
        value: Sequence[int],
        *,
        timeout: float | None = None,
    ) -> list[int]:
        """Calls `conformance.echo-numbers`."""
        return await _methods.ECHO_NUMBERS.start(self, timeout, value)

    async def echo_floats(
        self,
        value: Sequence[float],
        *,
        timeout: float | None = None,
    ) -> list[float]:
        """Calls `conformance.echo-floats`."""
        return await _methods.ECHO_FLOATS.start(self, timeout, value)

    async def echo_strings(
        self,
        value: Sequence[str],
        *,
        timeout: float | None = None,
    ) -> list[str]:
        """Calls `conformance.echo-strings`."""
        return await _methods.ECHO_STRINGS.start(self, timeout, value)

    async def echo_grid(
        self,
        value: Sequence[Sequence[int]],
        *,
        timeout: float | None = None,
    ) -> list[list[int]]:
        """Calls `conformance.echo-grid`."""
        return await _methods.ECHO_GRID.start(self, timeout, value)

    async def echo_points(
        self,
        value: Sequence[Point],
        *,
        timeout: float | None = None,
    ) -> list[Point]:
        """Calls `conformance.echo-points`."""
        return await _methods.ECHO_POINTS.start(self, timeout, value)

    async def echo_option(
        self,
        value: str | None = None,
        *,
        timeout: float | None = None,
    ) -> str | None:
        """Calls `conformance.echo-option`."""
        return await _methods.ECHO_OPTION.start(self, timeout, value)

    async def echo_option_twice(
        self,
        value: thalweg.Some[int | None] | None = None,
        *,
        timeout: float | None = None,
    ) -> thalweg.Some[int | None] | None:
        """Calls `conformance.echo-option-twice`."""
        return await _methods.ECHO_OPTION_TWICE.start(self, timeout, value)

    async def echo_result(
        self,
        value: tuple[thalweg.Ok[int] | thalweg.Err[str]],
        *,
        timeout: float | None = None,
    ) -> tuple[thalweg.Ok[int] | thalweg.Err[str]]:
        """Calls `conformance.echo-result`."""
        return await _methods.ECHO_RESULT.start(self, timeout, value)

    async def echo_result_ok(
        self,
        value: Sequence[thalweg.Ok[int] | thalweg.Err[None]],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[int] | thalweg.Err[None]]:
        """Calls `conformance.echo-result-ok`."""
        return await _methods.ECHO_RESULT_OK.start(self, timeout, value)

    async def echo_result_error(
        self,
        value: Sequence[thalweg.Ok[None] | thalweg.Err[str]],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[None] | thalweg.Err[str]]:
        """Calls `conformance.echo-result-error`."""
        return await _methods.ECHO_RESULT_ERROR.start(self, timeout, value)

    async def echo_result_bare(
        self,
        value: Sequence[thalweg.Ok[None] | thalweg.Err[None]],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[None] | thalweg.Err[None]]:
        """Calls `conformance.echo-result-bare`."""
        return await _methods.ECHO_RESULT_BARE.start(self, timeout, value)

    async def echo_tuple(
        self,
        value: tuple[int, str, float, str | None],
        *,
        timeout: float | None = None,
    ) -> tuple[int, str, float, str | None]:
        """Calls `conformance.echo-tuple`."""
        return await _methods.ECHO_TUPLE.start(self, timeout, value)

    async def echo_point(self, value: Point, *, timeout: float | None = None) -> Point:
        """Calls `conformance.echo-point`."""
        return await _methods.ECHO_POINT.start(self, timeout, value)

    async def echo_spot(self, value: Point, *, timeout: float | None = None) -> Spot:
        """Calls `conformance.echo-spot`."""
        return await _methods.ECHO_SPOT.start(self, timeout, value)

    async def echo_scalars(
        self,
        value: Scalars,
        *,
        timeout: float | None = None,
    ) -> Scalars:
        """Calls `conformance.echo-scalars`."""
        return await _methods.ECHO_SCALARS.start(self, timeout, value)

    async def echo_nested(
        self,
        value: Nested,
        *,
        timeout: float | None = None,
    ) -> Nested:
        """Calls `conformance.echo-nested`."""
        return await _methods.ECHO_NESTED.start(self, timeout, value)

    async def echo_keywords(
        self,
        value: Keywords,
        *,
        timeout: float | None = None,
    ) -> Keywords:
        """Calls `conformance.echo-keywords`."""
        return await _methods.ECHO_KEYWORDS.start(self, timeout, value)

    async def echo_shape(self, value: Shape, *, timeout: float | None = None) -> Shape:
        """Calls `conformance.echo-shape`."""
        return await _methods.ECHO_SHAPE.start(self, timeout, value)

    async def echo_shapes(
        self,
        value: Sequence[Shape],
        *,
        timeout: float | None = None,
    ) -> list[Shape]:
        """Calls `conformance.echo-shapes`."""
        return await _methods.ECHO_SHAPES.start(self, timeout, value)

    async def echo_color(self, value: Color, *, timeout: float | None = None) -> Color:
        """Calls `conformance.echo-color`."""
        return await _methods.ECHO_COLOR.start(self, timeout, value)

    async def echo_colors(
        self,
        value: Sequence[Color],
        *,
        timeout: float | None = None,
    ) -> list[Color]:
        """Calls `conformance.echo-colors`."""
        return await _methods.ECHO_COLORS.start(self, timeout, value)

    async def echo_rights(
        self,
        value: Rights,
        *,
        timeout: float | None = None,
    ) -> Rights:
        """Calls `conformance.echo-rights`."""
        return await _methods.ECHO_RIGHTS.start(self, timeout, value)

    async def echo_days(self, value: Days, *, timeout: float | None = None) -> Days:
        """Calls `conformance.echo-days`."""
        return await _methods.ECHO_DAYS.start(self, timeout, value)

    async def echo_wide(self, value: Wide, *, timeout: float | None = None) -> Wide:
        """Calls `conformance.echo-wide`."""
        return await _methods.ECHO_WIDE.start(self, timeout, value)

    async def echo_names(
        self,
        value: Sequence[str],
        *,
        timeout: float | None = None,
    ) -> Names:
        """Calls `conformance.echo-names`."""
        return await _methods.ECHO_NAMES.start(self, timeout, value)

    async def echo_failure(
        self,
        value: Failure,
        *,
        timeout: float | None = None,
    ) -> Failure:
        """Calls `conformance.echo-failure`."""
        return await _methods.ECHO_FAILURE.start(self, timeout, value)

    async def several(
        self,
        type_: int,
        match_: str,
        list: Sequence[int],
        bool: Point | None = None,
        *,
        timeout: float | None = None,
    ) -> tuple[int, str, list[int], Point | None]:
        """Several parameters, keywords among them."""
        return await _methods.SEVERAL.start(self, timeout, type_, match_, list, bool)

    async def nothing(self, *, timeout: float | None = None) -> None:
        """No parameter, no result."""
        return await _methods.NOTHING.start(self, timeout)

    async def count(
        self,
        first: int,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """`count` numbers from `first` on.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.COUNT.start(self, timeout, first, count)

    async def items(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Item, ItemView]:
        """`count` items: number i, name `item i`, i % 3 tags, a blob where i is even.

        Where its reader is slow, the writer waits; it holds 256 records.

        Raises `Failure`.
        """
        return await _methods.ITEMS.start(self, timeout, count)

    async def latest(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """`count` numbers from 0 on, as fast as it goes; a slow reader gets the newest.

        Where its reader is slow, a newer record replaces the one that waits, which is counted.
        """
        return await _methods.LATEST.start(self, timeout, count)

    async def breaks(
        self,
        after: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """`after` numbers from 0 on, then the service panics in the middle of the stream.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.BREAKS.start(self, timeout, after)

    async def endless(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """Numbers without an end, until the stream is closed or the call's client goes.

        Where its reader is slow, the writer waits; it holds 64 records.
        """
        return await _methods.ENDLESS.start(self, timeout)

    async def running(self, *, timeout: float | None = None) -> int:
        """How many of the streams of `endless` still run."""
        return await _methods.RUNNING.start(self, timeout)

    async def fail(
        self,
        how: Failure | None = None,
        *,
        timeout: float | None = None,
    ) -> int:
        """Fails as it is told to; succeeds with 7 where it is told nothing.

        Raises `Failure`.
        """
        return await _methods.FAIL.start(self, timeout, how)

    async def fail_later(
        self,
        how: Failure | None = None,
        *,
        timeout: float | None = None,
    ) -> int:
        """The same as an `async func`.

        Raises `Failure`.
        """
        return await _methods.FAIL_LATER.start(self, timeout, how)

    async def fail_bare(self, fails: bool, *, timeout: float | None = None) -> None:
        """Neither side has anything in it.

        Raises `thalweg.ServiceError`.
        """
        return await _methods.FAIL_BARE.start(self, timeout, fails)

    async def panic(self, message: str, *, timeout: float | None = None) -> int:
        """Panics with this message."""
        return await _methods.PANIC.start(self, timeout, message)

    async def panic_later(self, message: str, *, timeout: float | None = None) -> int:
        """Panics with this message in an actor of its own."""
        return await _methods.PANIC_LATER.start(self, timeout, message)

    async def never(
        self,
        *,
        timeout: float | None = None,
        on_notice: Callable[[float], object] | None = None,
    ) -> None:
        """Never ends, until it is cancelled.

        `on_notice` is called each 0.001 s while the call runs and is waited for, with the
        seconds since it was made. What it raises cancels the call, which raises it.
        """
        return await _methods.NEVER.start(self, timeout, on_notice=on_notice)

    async def sleep(self, milliseconds: int, *, timeout: float | None = None) -> int:
        """Ends after so many milliseconds with that number."""
        return await _methods.SLEEP.start(self, timeout, milliseconds)

    async def counter(
        self,
        start: int,
        *,
        timeout: float | None = None,
    ) -> AsyncCounter:
        """Begins at `start`."""
        return await _methods.COUNTER.start_make(AsyncCounter, self, timeout, start)

    async def counter_sum(
        self,
        left: AsyncCounter,
        right: AsyncCounter,
        *,
        timeout: float | None = None,
    ) -> AsyncCounter:
        """A new one: the sum of both."""
        return await _methods.COUNTER_SUM.start_make(
            AsyncCounter,
            self,
            timeout,
            left,
            right,
        )

    async def counter_finish(
        self,
        counter: AsyncCounter,
        *,
        timeout: float | None = None,
    ) -> int:
        """Ends it and says what it was."""
        return await _methods.COUNTER_FINISH.start(self, timeout, counter)

    async def even(self, value: int, *, timeout: float | None = None) -> AsyncEven:
        """Fails where `value` is odd.

        Raises `Failure`.
        """
        return await _methods.EVEN.start_make(AsyncEven, self, timeout, value)

    async def counters(self, *, timeout: float | None = None) -> int:
        """How many counters live."""
        return await _methods.COUNTERS.start(self, timeout)

    async def echo_key(
        self,
        value: bytes | bytearray | memoryview,
        *,
        timeout: float | None = None,
    ) -> bytes:
        """Calls `conformance.echo-key`."""
        return await _methods.ECHO_KEY.start(self, timeout, value)

    async def echo_three(
        self,
        value: Sequence[int],
        *,
        timeout: float | None = None,
    ) -> list[int]:
        """Calls `conformance.echo-three`."""
        return await _methods.ECHO_THREE.start(self, timeout, value)

    async def echo_fixed(self, value: Fixed, *, timeout: float | None = None) -> Fixed:
        """Calls `conformance.echo-fixed`."""
        return await _methods.ECHO_FIXED.start(self, timeout, value)

    async def echo_keys(
        self,
        value: Sequence[bytes | bytearray | memoryview],
        *,
        timeout: float | None = None,
    ) -> list[bytes]:
        """Calls `conformance.echo-keys`."""
        return await _methods.ECHO_KEYS.start(self, timeout, value)

    async def many(
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
        counter: AsyncCounter,
        m: int,
        *,
        timeout: float | None = None,
    ) -> tuple[int, str]:
        """More parameters than a tuple has fields: the sum of the numbers, and the texts one after the other."""
        return await _methods.MANY.start(
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

    async def twice(self, value: int, *, timeout: float | None = None) -> int:
        """Twice the number, on the caller's thread."""
        return await _methods.TWICE.start(self, timeout, value)

    async def fail_here(
        self,
        how: Failure | None = None,
        *,
        timeout: float | None = None,
    ) -> int:
        """As `fail`, on the caller's thread.

        Raises `Failure`.
        """
        return await _methods.FAIL_HERE.start(self, timeout, how)

    async def panic_here(self, message: str, *, timeout: float | None = None) -> int:
        """Panics with this message, on the caller's thread."""
        return await _methods.PANIC_HERE.start(self, timeout, message)

    async def ask(self, key: int, *, timeout: float | None = None) -> str:
        """Looks up in the host's oracle, and gives what it said: its text, or the number of the code of how else it ended.

        Raises `thalweg.ServiceError`.
        """
        return await _methods.ASK.start(self, timeout, key)

    async def ask_later(self, key: int, *, timeout: float | None = None) -> str:
        """The same as an `async func`.

        Raises `thalweg.ServiceError`.
        """
        return await _methods.ASK_LATER.start(self, timeout, key)

    async def tell(
        self,
        words: Sequence[str],
        at: int | None = None,
        *,
        timeout: float | None = None,
    ) -> int:
        """Tells the host's oracle, and gives what it said.

        Raises `thalweg.ServiceError`.
        """
        return await _methods.TELL.start(self, timeout, words, at)

    async def samples(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Sample, SampleView]:
        """`count` samples: number i at (i, -i), every field of `all` made of i, a weight and a name where i is even, i % 4 corners.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.SAMPLES.start(self, timeout, count)

    async def shapes(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Shape, Shape]:
        """`count` shapes: a variant as an element.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.SHAPES.start(self, timeout, count)

    async def give_counters(
        self,
        start: int,
        count: int,
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Held]:
        """`count` counters, the first begins at `start`, each other one further."""
        return await _methods.GIVE_COUNTERS.start(self, timeout, start, count)

    async def total(
        self,
        counters: Sequence[thalweg.Held],
        *,
        timeout: float | None = None,
    ) -> int:
        """The sum of all, which are gone then."""
        return await _methods.TOTAL.start(self, timeout, counters)

    async def first_of(
        self,
        counter: thalweg.Held | None = None,
        *,
        timeout: float | None = None,
    ) -> int | None:
        """What it is, if there is one; it is gone then."""
        return await _methods.FIRST_OF.start(self, timeout, counter)

    async def swap(self, value: Pair, *, timeout: float | None = None) -> Pair:
        """The same pair; left and right change places where there is a right one.

        Raises `MaybeCounter`.
        """
        return await _methods.SWAP.start(self, timeout, value)

    async def refuse(
        self,
        value: MaybeCounter,
        *,
        timeout: float | None = None,
    ) -> None:
        """Fails with what it is given, which is the caller's again.

        Raises `MaybeCounter`.
        """
        return await _methods.REFUSE.start(self, timeout, value)

    async def later(
        self,
        milliseconds: int,
        text: str,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncFuture[str]:
        """A text that comes later: after so many milliseconds; with 0, at once."""
        return thalweg.AsyncFuture(
            await _methods.LATER.start(self, timeout, milliseconds, text),
        )

    async def never_comes(
        self,
        message: str | None = None,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncFuture[Point]:
        """A point that never comes: the service drops it, or panics with this message.

        Raises `Failure`.
        """
        return thalweg.AsyncFuture(
            await _methods.NEVER_COMES.start(self, timeout, message),
        )

    async def scale(self, by: int, *, timeout: float | None = None) -> AsyncScale:
        """Multiplies by `by`."""
        return await _methods.SCALE.start_make(AsyncScale, self, timeout, by)

    async def ticks(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """Numbers that come when `tick` and `mark` are called, until `end-ticks`.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.TICKS.start(self, timeout)

    async def tick(self, count: int, *, timeout: float | None = None) -> int:
        """Sends each stream of `ticks` its next `count` numbers, which begin at 0, and says how many streams read."""
        return await _methods.TICK.start(self, timeout, count)

    async def mark(self, number: int, *, timeout: float | None = None) -> int:
        """Sends each stream of `ticks` this number on its control lane."""
        return await _methods.MARK.start(self, timeout, number)

    async def end_ticks(self, *, timeout: float | None = None) -> None:
        """Every stream of `ticks` ends."""
        return await _methods.END_TICKS.start(self, timeout)

    async def drops_newest(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """The numbers from 0 on, `count` of them, all written before anybody reads. A full stream drops its newest.

        Where its reader is slow, new records are dropped and counted; it holds 64.
        """
        return await _methods.DROPS_NEWEST.start(self, timeout, count)

    async def drops_oldest(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """The same; a full stream drops its oldest.

        Where its reader is slow, the oldest records are dropped and counted; it holds 64.
        """
        return await _methods.DROPS_OLDEST.start(self, timeout, count)

    async def refuses(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """The same; a full stream refuses, and the service throws away what was refused and says so.

        Where its reader is slow, the writer is refused; it holds 64 records.
        """
        return await _methods.REFUSES.start(self, timeout, count)

    async def waiting(self, *, timeout: float | None = None) -> int:
        """How many calls of `never`, of `held-up` and of `limited` are under way."""
        return await _methods.WAITING.start(self, timeout)

    async def looked_up(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[str, str]:
        """What the host's oracle says of the even keys from 0 on, `count` of them: each is looked up when the one before was sent.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.LOOKED_UP.start(self, timeout, count)

    async def lease(self, ms: int, *, timeout: float | None = None) -> AsyncLease:
        """Is there after `ms` milliseconds; fails where that is odd. Its end takes as long.

        Raises `Failure`.
        """
        return await _methods.LEASE.start_make(AsyncLease, self, timeout, ms)

    async def leases(self, *, timeout: float | None = None) -> tuple[int, int]:
        """How many leases are there or end; how many have ended well."""
        return await _methods.LEASES.start(self, timeout)

    async def sum_of(
        self,
        numbers: AsyncIterable[int] | Iterable[int],
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
        return await _methods.SUM_OF.start(self, timeout, numbers, on_notice=on_notice)

    async def names_of(
        self,
        items: AsyncIterable[Item] | Iterable[Item],
        *,
        timeout: float | None = None,
    ) -> str:
        """The names of the items, one after the other.

        `items` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return await _methods.NAMES_OF.start(self, timeout, items)

    async def first_numbers(
        self,
        count: int,
        numbers: AsyncIterable[int] | Iterable[int],
        *,
        timeout: float | None = None,
    ) -> list[int]:
        """The first `count` numbers; then the stream is closed.

        `numbers` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return await _methods.FIRST_NUMBERS.start(self, timeout, count, numbers)

    async def words_first(
        self,
        numbers: AsyncIterable[int] | Iterable[int],
        words: AsyncIterable[str] | Iterable[str],
        *,
        timeout: float | None = None,
    ) -> tuple[str, int]:
        """The words one after the other, which are read first, and the sum of the numbers.

        `numbers` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.

        `words` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return await _methods.WORDS_FIRST.start(self, timeout, numbers, words)

    async def add_all(
        self,
        counter: AsyncCounter,
        amounts: AsyncIterable[int] | Iterable[int],
        *,
        timeout: float | None = None,
    ) -> int:
        """Adds all, and says what it is then.

        `amounts` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return await _methods.ADD_ALL.start(self, timeout, counter, amounts)

    async def hear(
        self,
        text: Awaitable[thalweg.NoValue | str] | thalweg.NoValue | str,
        *,
        timeout: float | None = None,
    ) -> str:
        """The text when it comes; the number of the code of why none does.

        `text` is a value, what can be awaited for it, or `thalweg.NoValue()` where there is none.

        Raises `thalweg.ServiceError`.
        """
        return await _methods.HEAR.start(self, timeout, text)

    async def beats_of(
        self,
        beats: AsyncIterable[None] | Iterable[None],
        *,
        timeout: float | None = None,
    ) -> int:
        """How many times there was nothing.

        `beats` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return await _methods.BEATS_OF.start(self, timeout, beats)

    async def comes(
        self,
        signal: Awaitable[thalweg.NoValue | None] | thalweg.NoValue | None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Ends when it comes; the number of the code of why it does not.

        `signal` is a value, what can be awaited for it, or `thalweg.NoValue()` where there is none.

        Raises `thalweg.ServiceError`.
        """
        return await _methods.COMES.start(self, timeout, signal)

    async def beats(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[None, None]:
        """Nothing, so many times.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.BEATS.start(self, timeout, count)

    async def signal(
        self,
        milliseconds: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncFuture[None]:
        """Nothing, later: after so many milliseconds; with 0, at once."""
        return thalweg.AsyncFuture(
            await _methods.SIGNAL.start(self, timeout, milliseconds),
        )

    async def ask_all(
        self,
        keys: AsyncIterable[int] | Iterable[int],
        *,
        timeout: float | None = None,
    ) -> list[thalweg.Ok[str] | thalweg.Err[int]]:
        """What the host's oracle says of each key, which is looked up before the next one is read.

        `keys` is iterated and sent while the call is waited for, until the service has enough.
        What iterating it raises cancels the call, which raises it.
        """
        return await _methods.ASK_ALL.start(self, timeout, keys)

    async def held_up(
        self,
        *,
        timeout: float | None = None,
        on_notice: Callable[[float], object] | None = None,
    ) -> None:
        """Ends when `let-go` is called.

        `on_notice` is called each 0.001 s while the call runs and is waited for, with the
        seconds since it was made. What it raises cancels the call, which raises it.
        """
        return await _methods.HELD_UP.start(self, timeout, on_notice=on_notice)

    async def let_go(self, *, timeout: float | None = None) -> None:
        """Lets go of each call of `held-up` that is under way."""
        return await _methods.LET_GO.start(self, timeout)

    async def bits(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[bool, bool]:
        """Whether each number from 0 on is odd, `count` of them.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.BITS.start(self, timeout, count)

    async def letters(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[str, str]:
        """`a`, `ß`, `☃` and `𐍈`, again and again.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.LETTERS.start(self, timeout, count)

    async def maybes(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[str | None, str | None]:
        """The even ones of the numbers from 0 on as texts, and of the odd ones nothing.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.MAYBES.start(self, timeout, count)

    async def couples(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[tuple[int, str], tuple[int, str]]:
        """The numbers from 0 on, the low byte and as text.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.COUPLES.start(self, timeout, count)

    async def rows(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[list[int], list[int]]:
        """So many of the numbers from 0 on: none, one, two and three, again and again.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.ROWS.start(self, timeout, count)

    async def outcomes(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[
        thalweg.Ok[int] | thalweg.Err[str],
        thalweg.Ok[int] | thalweg.Err[str],
    ]:
        """The even ones of the numbers from 0 on, and `no` and the number for the odd ones.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.OUTCOMES.start(self, timeout, count)

    async def by_name(
        self,
        names: int,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Item, ItemView]:
        """Items from 0 on, `count` of them, all written before anybody reads. They have `names` names in turn, and a newer one
        replaces the one of its name.

        Where its reader is slow, a newer record replaces the one that waits and has the same `name`, which is counted; it holds 64, each with another one.
        """
        return await _methods.BY_NAME.start(self, timeout, names, count)

    async def feeds(self, count: int, *, timeout: float | None = None) -> list[Feed]:
        """So many feeds, each named by its place. Its numbers are those below that; those at odd places have a last word, which is the name.

        For each stream in what it gives: where its reader is slow, the writer waits; it holds 64 records.
        """
        return await _methods.FEEDS.start(self, timeout, count)

    async def endless_feed(self, *, timeout: float | None = None) -> Feed:
        """One whose numbers go on until nobody reads them; `running` counts it.

        For each stream in what it gives: where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.ENDLESS_FEED.start(self, timeout)

    async def mixed(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> tuple[thalweg.HeldStream[None, None], thalweg.HeldFuture[Point]]:
        """So many times nothing, and a point at `count`. Where that is 0, it fails with a feed of three numbers.

        For each stream in what it gives: where its reader is slow, the writer waits; it holds 8192 records.

        Raises `FeedException`.
        """
        return await _methods.MIXED.start(self, timeout, count)

    async def limited(self, *, timeout: float | None = None) -> None:
        """Answers after a minute. A call of it has 20 ms, says the policy file.

        A call has 20ms at most, whatever deadline its caller gives.
        """
        return await _methods.LIMITED.start(self, timeout)

    async def stops(
        self,
        count: int,
        how: str,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[int, int]:
        """`count` numbers from 0 on. There are two writers, and `how` is what becomes of them: `finish`, both finish; `one`, one of them
        finishes and the other is dropped; `drop`, both are dropped; `fail`, the stream fails with `code(count)`.

        Where its reader is slow, the writer waits; it holds 8192 records.

        Raises `Failure`.
        """
        return await _methods.STOPS.start(self, timeout, count, how)

    async def rows_of(
        self,
        count: int,
        size: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[str, str]:
        """`count` texts of one letter, then one of `size` letters, then another of one letter. A record has 64 KiB at most, says the policy file;
        where one is refused the writer is dropped.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.ROWS_OF.start(self, timeout, count, size)

    async def fails_to_come(
        self,
        code: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncFuture[Point]:
        """A point that does not come: the future fails with `code(code)`.

        Raises `Failure`.
        """
        return thalweg.AsyncFuture(
            await _methods.FAILS_TO_COME.start(self, timeout, code),
        )
