"""Progress notices of a running call: sync, asyncio and uvloop."""

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


class NoticeRecorder:
    """Records notices, and calls `then` at the `at`th notice and each later one."""

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
        # The times strictly increase.
        assert self.seconds == sorted(set(self.seconds))


def fail() -> None:
    raise Enough


def test_waiting_call_receives_progress_notices(service: Conformance) -> None:
    # The handler makes a call on the waiting thread.
    recorder = NoticeRecorder(5, service.let_go)
    service.held_up(on_notice=recorder)
    recorder.check()
    service.held_up(on_notice=NoticeRecorder(1, service.let_go))


@pytest.mark.parametrize("raised", [Enough, KeyboardInterrupt])
def test_exception_in_notice_handler_cancels_call(
    service: Conformance, raised: type[BaseException]
) -> None:
    def then() -> None:
        raise raised

    recorder = NoticeRecorder(2, then)
    with pytest.raises(raised):
        service.held_up(on_notice=recorder)
    assert len(recorder.seconds) == 2
    while service.waiting():
        pass
    service.let_go()


def test_notice_handler_is_not_reentered(service: Conformance) -> None:
    inside = 0

    def then() -> None:
        nonlocal inside
        assert inside == 0
        inside += 1
        # The nested call takes more than ten intervals.
        assert service.sleep(12) == 12
        inside -= 1
        if len(recorder.seconds) == 3:
            raise Enough

    recorder = NoticeRecorder(1, then)
    with pytest.raises(Enough):
        service.never(on_notice=recorder)
    assert len(recorder.seconds) == 3
    recorder.check()


def test_notices_during_handler_are_conflated(service: Conformance) -> None:
    def then() -> None:
        if len(outer.seconds) == 1:
            service.held_up(on_notice=NoticeRecorder(50, service.let_go))
            while service.waiting():
                pass

    outer = NoticeRecorder(1, then)
    service.held_up(on_notice=outer)
    # 50 intervals passed during the first run of the handler.
    assert len(outer.seconds) < 50
    outer.check()


def test_nested_calls_receive_their_own_notices(service: Conformance) -> None:
    def then() -> None:
        inner = NoticeRecorder(3, service.let_go)
        service.held_up(on_notice=inner)
        inner.check()

    outer = NoticeRecorder(2, then)
    service.held_up(on_notice=outer)
    outer.check()


def test_notices_arrive_between_sent_elements(service: Conformance) -> None:
    recorder = NoticeRecorder(1000000, fail)

    def numbers() -> Iterator[int]:
        while len(recorder.seconds) < 3:
            yield 1

    count, total = service.sum_of(numbers(), on_notice=recorder)
    assert count == total > 0
    assert len(recorder.seconds) >= 3
    assert recorder.seconds == sorted(set(recorder.seconds))


def test_call_with_notices_still_times_out(service: Conformance) -> None:
    recorder = NoticeRecorder(1000000, fail)
    with pytest.raises(thalweg.TimedOut):
        service.never(timeout=0.2, on_notice=recorder)
    assert recorder.seconds == sorted(set(recorder.seconds))


def test_notice_handler_must_be_callable(service: Conformance) -> None:
    with pytest.raises(TypeError, match="on_notice"):
        service.held_up(on_notice=3)  # type: ignore[arg-type]
    assert service.waiting() == 0


def test_method_without_notice_interval_refuses_handler(service: Conformance) -> None:
    with pytest.raises(TypeError, match="on_notice"):
        service.nothing(on_notice=print)  # type: ignore[call-arg]
    with pytest.raises(thalweg.BadArgument, match="notice"):
        _methods.NOTHING.call(service, None, on_notice=print)


def test_notice_handler_is_freed_after_call(service: Conformance) -> None:
    recorder = NoticeRecorder(1, service.let_go)
    gone = weakref.ref(recorder)
    service.held_up(on_notice=recorder)
    service.held_up(on_notice=recorder)
    del recorder
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


def test_notice_handler_runs_in_awaiting_task(
    run: Run, conformance_library: str
) -> None:
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

                recorder = NoticeRecorder(5, then)
                await service.held_up(on_notice=recorder)
                assert recorder.seconds == sorted(set(recorder.seconds))
                if number == 49:
                    recorder.check()

            await asyncio.gather(*map(call, range(50)))
            await asyncio.gather(*tasks)

    run(main())


def test_exception_in_notice_handler_is_raised_by_await(
    run: Run, conformance_library: str
) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            recorder = NoticeRecorder(2, fail)
            with pytest.raises(Enough):
                await service.held_up(on_notice=recorder)
            assert len(recorder.seconds) == 2
            while await service.waiting():
                pass

    run(main())


def test_notice_handler_can_cancel_its_task(run: Run, conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:

            async def call() -> None:
                task = asyncio.current_task()
                assert task is not None
                await service.held_up(on_notice=NoticeRecorder(2, task.cancel))

            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(call())
            while await service.waiting():
                pass

    run(main())


def test_async_notices_arrive_between_sent_elements(
    run: Run, conformance_library: str
) -> None:
    async def main() -> None:
        recorder = NoticeRecorder(1000000, fail)

        async def numbers() -> AsyncIterator[int]:
            while len(recorder.seconds) < 3:
                yield 1
                await asyncio.sleep(0)

        async with AsyncConformance.open(conformance_library) as service:
            count, total = await service.sum_of(numbers(), on_notice=recorder)
            assert count == total > 0
            assert recorder.seconds == sorted(set(recorder.seconds))
            failing = NoticeRecorder(2, fail)
            recorder.seconds.clear()
            with pytest.raises(Enough):
                await service.sum_of(numbers(), on_notice=failing)
            assert len(failing.seconds) == 2

    run(main())


def test_async_notice_handler_is_freed_after_call(
    run: Run, conformance_library: str
) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            tasks = []
            recorder = NoticeRecorder(
                1, lambda: tasks.append(asyncio.ensure_future(service.let_go()))
            )
            gone = weakref.ref(recorder)
            await service.held_up(on_notice=recorder)
            await asyncio.gather(*tasks)
            with pytest.raises(TypeError, match="on_notice"):
                await service.held_up(on_notice=3)  # type: ignore[arg-type]
            del recorder
            gc.collect()
            assert gone() is None

    run(main())
