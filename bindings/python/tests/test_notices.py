"""What a call says while it runs: sync, and on asyncio with its own loop and uvloop's."""

import asyncio
import contextvars
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
import thalweg
import uvloop
from thalweg_conformance import AsyncConformance, Conformance, _methods

INTERVAL = 0.001


class Enough(Exception):
    pass


class Told:
    """Counts, and does something at the `at`th time and later."""

    def __init__(self, at: int, then: Callable[[], object]) -> None:
        self.at = at
        self.then = then
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) >= self.at:
            self.then()

    def check(self) -> None:
        assert len(self.seconds) >= self.at
        assert self.seconds[0] >= INTERVAL
        # Each later than the one before.
        assert self.seconds == sorted(set(self.seconds))


def fail() -> None:
    raise Enough


def test_who_waits_is_told_and_the_call_ends_as_it_does(service: Conformance) -> None:
    # It calls on the thread that waits.
    told = Told(5, service.let_go)
    service.held_up(on_notice=told)
    told.check()
    service.held_up(on_notice=Told(1, service.let_go))


@pytest.mark.parametrize("raised", [Enough, KeyboardInterrupt])
def test_what_is_raised_cancels_the_call_and_is_what_it_raises(
    service: Conformance, raised: type[BaseException]
) -> None:
    def then() -> None:
        raise raised

    told = Told(2, then)
    with pytest.raises(raised):
        service.held_up(on_notice=told)
    assert len(told.seconds) == 2
    while service.waiting():
        pass
    service.let_go()


def test_it_is_not_told_inside_of_itself(service: Conformance) -> None:
    inside = 0

    def then() -> None:
        nonlocal inside
        assert inside == 0
        inside += 1
        # Ten intervals and more.
        assert service.sleep(12) == 12
        inside -= 1
        if len(told.seconds) == 3:
            raise Enough

    told = Told(1, then)
    with pytest.raises(Enough):
        service.never(on_notice=told)
    assert len(told.seconds) == 3
    told.check()


def test_of_those_that_come_meanwhile_the_last_is_kept(service: Conformance) -> None:
    def then() -> None:
        if len(outer.seconds) == 1:
            service.held_up(on_notice=Told(50, service.let_go))
            while service.waiting():
                pass

    outer = Told(1, then)
    service.held_up(on_notice=outer)
    # 50 came while it was in there.
    assert len(outer.seconds) < 50
    outer.check()


def test_each_call_of_several_that_wait_has_its_own(service: Conformance) -> None:
    def then() -> None:
        inner = Told(3, service.let_go)
        service.held_up(on_notice=inner)
        inner.check()

    outer = Told(2, then)
    service.held_up(on_notice=outer)
    outer.check()


def test_who_sends_meanwhile_is_told_between_two_elements(service: Conformance) -> None:
    told = Told(1000000, fail)

    def numbers() -> Iterator[int]:
        while len(told.seconds) < 3:
            yield 1

    count, total = service.sum_of(numbers(), on_notice=told)
    assert count == total > 0
    assert len(told.seconds) >= 3
    assert told.seconds == sorted(set(told.seconds))


def test_a_call_is_told_of_its_own_deadline(service: Conformance) -> None:
    told = Told(1000000, fail)
    with pytest.raises(thalweg.TimedOut):
        service.never(timeout=0.2, on_notice=told)
    assert told.seconds == sorted(set(told.seconds))


def test_only_what_can_be_called_is_told(service: Conformance) -> None:
    with pytest.raises(TypeError, match="on_notice"):
        service.held_up(on_notice=3)  # type: ignore[arg-type]
    assert service.waiting() == 0


def test_a_method_without_an_interval_tells_nobody(service: Conformance) -> None:
    with pytest.raises(TypeError, match="on_notice"):
        service.nothing(on_notice=print)  # type: ignore[call-arg]
    with pytest.raises(thalweg.BadArgument, match="notice"):
        _methods.NOTHING.call(service, None, on_notice=print)


def test_who_was_told_is_let_go_of(service: Conformance) -> None:
    told = Told(1, service.let_go)
    gone = weakref.ref(told)
    service.held_up(on_notice=told)
    service.held_up(on_notice=told)
    del told
    gc.collect()
    assert gone() is None


@pytest.fixture(
    params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def run(
    request: pytest.FixtureRequest,
) -> Callable[[Coroutine[Any, Any, None]], None]:
    def run(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(main, 60))

    return run


Run = Callable[[Coroutine[Any, Any, None]], None]


def test_the_task_that_awaits_is_told(run: Run, conformance_library: str) -> None:
    mine = contextvars.ContextVar("mine", default=0)

    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            tasks = []

            async def call(number: int) -> None:
                mine.set(number)
                task = asyncio.current_task()

                def then() -> None:
                    assert asyncio.current_task() is task
                    assert mine.get() == number
                    if number == 49:
                        tasks.append(asyncio.ensure_future(service.let_go()))

                told = Told(5, then)
                await service.held_up(on_notice=told)
                assert told.seconds == sorted(set(told.seconds))
                if number == 49:
                    told.check()

            await asyncio.gather(*map(call, range(50)))
            await asyncio.gather(*tasks)

    run(main())


def test_what_is_raised_is_raised_where_it_is_awaited(
    run: Run, conformance_library: str
) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            told = Told(2, fail)
            with pytest.raises(Enough):
                await service.held_up(on_notice=told)
            assert len(told.seconds) == 2
            while await service.waiting():
                pass

    run(main())


def test_who_is_told_may_cancel_the_task(run: Run, conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:

            async def call() -> None:
                task = asyncio.current_task()
                assert task is not None
                await service.held_up(on_notice=Told(2, task.cancel))

            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(call())
            while await service.waiting():
                pass

    run(main())


def test_who_awaits_what_is_sent_meanwhile_is_told(
    run: Run, conformance_library: str
) -> None:
    async def main() -> None:
        told = Told(1000000, fail)

        async def numbers() -> AsyncIterator[int]:
            while len(told.seconds) < 3:
                yield 1
                await asyncio.sleep(0)

        async with AsyncConformance.open(conformance_library) as service:
            count, total = await service.sum_of(numbers(), on_notice=told)
            assert count == total > 0
            assert told.seconds == sorted(set(told.seconds))
            failing = Told(2, fail)
            told.seconds.clear()
            with pytest.raises(Enough):
                await service.sum_of(numbers(), on_notice=failing)
            assert len(failing.seconds) == 2

    run(main())


def test_on_asyncio_too_it_is_let_go_of(run: Run, conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            tasks = []
            told = Told(
                1, lambda: tasks.append(asyncio.ensure_future(service.let_go()))
            )
            gone = weakref.ref(told)
            await service.held_up(on_notice=told)
            await asyncio.gather(*tasks)
            with pytest.raises(TypeError, match="on_notice"):
                await service.held_up(on_notice=3)  # type: ignore[arg-type]
            del told
            gc.collect()
            assert gone() is None

    run(main())
