"""Streams and futures that are parameters, from sync code and on asyncio."""

import asyncio
import gc
import itertools
import signal
import threading
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
import thalweg
import uvloop
from thalweg_conformance import AsyncConformance, Conformance, Item, _methods

MANY = 100_000
CANCELLED = 2


class Broken(Exception):
    """Raised by the iterables of these tests."""


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def breaking(after: int) -> Iterator[int]:
    yield from range(after)
    raise Broken


class Endless:
    """An endless iterable of numbers that records when it is closed."""

    def __init__(self) -> None:
        self.closed = False
        self.began = threading.Event()

    def __iter__(self) -> Iterator[int]:
        try:
            while True:
                self.began.set()
                yield 1
        finally:
            self.closed = True


def test_generator_sends_many_numbers(service: Conformance) -> None:
    assert service.sum_of(numbers(MANY)) == (MANY, MANY * (MANY - 1) // 2)


def test_any_iterable_is_accepted(service: Conformance) -> None:
    assert service.sum_of([]) == (0, 0)
    assert service.sum_of(range(1000)) == (1000, 499_500)
    assert service.sum_of({1: "a", 2: "b"}) == (2, 3)
    assert service.sum_of(b"\1\2\3") == (3, 6)
    # A stream that a call returned can be sent.
    assert service.sum_of(service.count(5, 3)) == (3, 18)


def test_records_are_sent_from_generator(service: Conformance) -> None:
    items = (Item(n, f"<{n}>", ["a"] * n, bytes(n)) for n in range(300))
    assert service.names_of(items) == "".join(f"<{n}>" for n in range(300))


def test_call_takes_borrowed_resource_and_stream(service: Conformance) -> None:
    with service.counter(5) as counter:
        assert service.add_all(counter, numbers(1000)) == 499_505


def test_argument_that_is_not_iterable_raises_type_error(service: Conformance) -> None:
    wrong: Any = 5
    expected = "sum-of: numbers: expected an iterable, got int"
    with pytest.raises(TypeError, match=expected):
        service.sum_of(wrong)
    # A str would be an iterable of str, so it is refused.
    with pytest.raises(TypeError, match="expected an iterable, got str"):
        service.words_first([], "words")


def test_exception_of_iterable_is_raised(service: Conformance) -> None:
    for after in (0, 3, MANY):
        with pytest.raises(Broken):
            service.sum_of(breaking(after))
    wrong: list[Any] = [1, 2, "three"]
    with pytest.raises(TypeError, match=r"sum-of: numbers\[2\]: expected int, got str"):
        service.sum_of(wrong)
    with pytest.raises(OverflowError, match=r"numbers\[0\]"):
        service.sum_of([-1])
    assert service.sum_of([1]) == (1, 1)


def test_iterable_is_closed_when_service_stops_reading(service: Conformance) -> None:
    endless = Endless()
    assert service.first_numbers(3, endless) == [1, 1, 1]
    gc.collect()
    assert endless.closed


def test_two_streams_read_in_reverse_order_complete(service: Conformance) -> None:
    words = (str(n % 10) for n in range(5000))
    text, total = service.words_first(numbers(5000), words)
    assert len(text) == 5000
    assert total == 5000 * 4999 // 2


def test_timeout_while_sending_closes_iterable(service: Conformance) -> None:
    endless = Endless()
    with pytest.raises(thalweg.TimedOut):
        service.sum_of(endless, timeout=0.05)
    gc.collect()
    assert endless.closed


@pytest.mark.parametrize(
    "endless",
    [iter(int, 1), map(sum, itertools.repeat(range(20_000)))],
    ids=["faster than the service", "slower"],
)
def test_signal_handler_exception_stops_sending(
    service: Conformance, endless: Iterator[int]
) -> None:
    """The iterables run no Python code between two elements."""

    def handler(number: int, frame: object) -> None:
        raise Broken

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(Broken):
            service.sum_of(endless)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_iterable_can_make_calls(service: Conformance) -> None:
    calling = (service.twice(n) + service.echo_u64(n) for n in range(500))
    assert service.sum_of(calling) == (500, 3 * 499 * 250)
    nested = (service.sum_of(numbers(n))[0] for n in range(300))
    assert service.sum_of(nested) == (300, 299 * 150)


def test_client_close_while_sending_closes_iterable(conformance_library: str) -> None:
    with Conformance.open(conformance_library) as service:
        endless = Endless()

        def closing() -> None:
            endless.began.wait()
            service.close()

        closer = threading.Thread(target=closing)
        closer.start()
        # The stream can end before the call, which then raises `ServiceError`.
        ends = (thalweg.Cancelled, thalweg.Closed, thalweg.ServiceError)
        with pytest.raises(ends):
            service.sum_of(endless)
        closer.join()
    gc.collect()
    assert endless.closed


class Book:
    """A host that has a text for every key and counts the look-ups."""

    def __init__(self) -> None:
        self.asked = 0

    def look_up(self, key: int) -> str:
        self.asked += 1
        return str(key)

    def tell(self, words: Sequence[str], at: int | None) -> int:
        return 0

    def nod(self) -> None:
        """Does nothing."""


class AsyncBook:
    async def look_up(self, key: int) -> str:
        return str(key)

    async def tell(self, words: Sequence[str], at: int | None) -> int:
        return 0

    async def nod(self) -> None:
        """Does nothing."""


def test_sending_call_answers_host_imports(conformance_library: str) -> None:
    expected = [thalweg.Ok(str(key)) for key in range(1000)]
    book = Book()
    with Conformance.open(conformance_library, host=book) as service:
        assert service.ask_all(numbers(1000)) == expected
    assert book.asked == 1000

    async def on_a_loop() -> None:
        host = AsyncBook()
        async with AsyncConformance.open(conformance_library, host=host) as service:
            assert await service.ask_all(later(1000)) == expected

    asyncio.run(on_a_loop())


def test_future_parameter_accepts_value_or_no_value(service: Conformance) -> None:
    assert service.hear("now") == "now"
    with pytest.raises(thalweg.ServiceError) as raised:
        service.hear(thalweg.NoValue())
    assert raised.value.payload == CANCELLED
    wrong: Any = 5
    with pytest.raises(TypeError, match=r"hear: text\[0\]: expected str"):
        service.hear(wrong)


def test_streams_and_futures_without_element_type(service: Conformance) -> None:
    assert service.beats_of(None for _ in range(1000)) == 1000
    service.comes(None)
    with pytest.raises(thalweg.ServiceError):
        service.comes(thalweg.NoValue())
    wrong: list[Any] = [1]
    with pytest.raises(TypeError, match="expected None"):
        service.beats_of(wrong)
    assert list(service.beats(1000)) == [None] * 1000
    done = service.signal(1)
    done.result()
    for batch in service.beats(7).batches():
        assert list(batch) == batch.objects() == [None] * len(batch)
        with pytest.raises(TypeError):
            batch.array()


def test_iterable_is_freed_after_call(service: Conformance) -> None:
    endless = Endless()
    assert service.first_numbers(1, endless) == [1]
    gone = weakref.ref(endless)
    del endless
    gc.collect()
    assert gone() is None


async def later(count: int) -> AsyncIterator[int]:
    for number in range(count):
        if number % 1000 == 0:
            await asyncio.sleep(0)
        yield number


class AsyncEndless:
    """`Endless` for asyncio."""

    def __init__(self) -> None:
        self.closed = False
        self.began = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            while True:
                self.began.set()
                yield 1
        finally:
            self.closed = True


async def never(error: BaseException | None = None) -> str:
    await asyncio.sleep(0)
    if error is not None:
        raise error
    text: str = await asyncio.get_running_loop().create_future()
    return text


async def aio_many(service: AsyncConformance) -> None:
    expected = (MANY, MANY * (MANY - 1) // 2)
    assert await service.sum_of(later(MANY)) == expected
    assert await service.sum_of(range(MANY)) == expected
    both = await asyncio.gather(service.sum_of(later(9)), service.sum_of(later(5000)))
    assert [count for count, _ in both] == [9, 5000]
    assert await service.sum_of(await service.count(0, 9)) == (9, 36)


async def aio_raises(service: AsyncConformance) -> None:
    async def fails(after: int) -> AsyncIterator[int]:
        async for number in later(after):
            yield number
        raise Broken

    for after in (0, 3, 5000):
        with pytest.raises(Broken):
            await service.sum_of(fails(after))
        with pytest.raises(Broken):
            await service.sum_of(breaking(after))
    wrong: list[Any] = ["one"]
    with pytest.raises(TypeError, match=r"numbers\[0\]: expected int, got str"):
        await service.sum_of(wrong)
    with pytest.raises(Broken):
        await service.hear(never(Broken()))
    assert await service.sum_of([1]) == (1, 1)


async def aio_enough(service: AsyncConformance) -> None:
    endless = AsyncEndless()
    assert await service.first_numbers(3, endless) == [1, 1, 1]
    await asyncio.sleep(0)
    assert endless.closed
    text, total = await service.words_first(later(3000), ["a"] * 3000)
    assert (len(text), total) == (3000, 3000 * 2999 // 2)


async def aio_cancelled(service: AsyncConformance) -> None:
    endless = AsyncEndless()
    task = asyncio.ensure_future(service.sum_of(endless))
    await endless.began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert endless.closed
    endless = AsyncEndless()
    with pytest.raises(thalweg.TimedOut):
        await service.sum_of(endless, timeout=0.05)
    # Drop a pending call before its task has started.
    pending = _methods.HEAR.start(service, None, never())
    del pending
    await asyncio.sleep(0)
    gc.collect()
    assert await service.sum_of([1]) == (1, 1)


async def aio_futures(service: AsyncConformance) -> None:
    async def text() -> str:
        await asyncio.sleep(0.001)
        return "later"

    async def none() -> thalweg.NoValue:
        return thalweg.NoValue()

    assert await service.hear("now") == "now"
    assert await service.hear(text()) == "later"
    nothing = asyncio.get_running_loop().create_future()
    nothing.cancel()
    for no_value in (thalweg.NoValue(), none(), nothing):
        with pytest.raises(thalweg.ServiceError) as raised:
            await service.hear(no_value)
        assert raised.value.payload == CANCELLED
    with pytest.raises(thalweg.TimedOut):
        await service.hear(never(), timeout=0.01)
    await service.comes(asyncio.sleep(0))
    await (await service.signal(1))
    assert await service.beats_of([None] * 300) == 300
    assert [beat async for beat in await service.beats(300)] == [None] * 300


async def aio_others_get_a_turn(service: AsyncConformance) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.ensure_future(count())
    await service.sum_of(range(MANY))
    counting.cancel()
    assert turns > MANY // 1000


@pytest.mark.parametrize(
    "case",
    [
        aio_many,
        aio_raises,
        aio_enough,
        aio_cancelled,
        aio_futures,
        aio_others_get_a_turn,
    ],
)
@pytest.mark.parametrize(
    "new_loop",
    [asyncio.new_event_loop, uvloop.new_event_loop],
    ids=["asyncio", "uvloop"],
)
def test_async_case_on_event_loop(
    conformance_library: str, case: Any, new_loop: Any
) -> None:
    async def run() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            await case(service)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*left, return_exceptions=True)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
