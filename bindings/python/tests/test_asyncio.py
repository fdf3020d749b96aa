"""Calls and streams on asyncio, with the event loops of asyncio and uvloop."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
import thalweg
import uvloop
from options import FIXED
from thalweg_conformance import AsyncConformance, AsyncCounter, Conformance
from thalweg_search import AsyncSearch, SearchErrorPattern

T = TypeVar("T")


new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop


@pytest.fixture(
    params=[asyncio.new_event_loop, uvloop.new_event_loop],
    ids=["asyncio", "uvloop"],
    autouse=True,
)
def loop_of_each_kind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "new_loop", request.param)


def run_one(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


def run(main: Coroutine[Any, Any, T]) -> T:
    return run_one(asyncio.wait_for(main, 30))


async def gone(service: AsyncConformance) -> None:
    """Waits until no endless stream is running."""
    while await service.running():
        await asyncio.sleep(0.01)


def test_values_errors_and_resources(conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            assert await service.echo_string("ü") == "ü"
            await service.nothing()
            with pytest.raises(thalweg.GuestPanicked, match="oh"):
                await service.panic_later("oh")
            async with await service.counter(3) as counter:
                assert isinstance(counter, AsyncCounter)
                assert await counter.add(1) == 4
                assert [step async for step in await counter.steps(3)] == [5, 6, 7]
            with pytest.raises(thalweg.Closed):
                await counter.value()
        with pytest.raises(thalweg.Closed):
            await service.nothing()

    run(main())


def test_async_search_yields_objects_and_views(search_library: str, tree: Path) -> None:
    async def main() -> None:
        async with AsyncSearch.open(search_library) as search:
            assert await search.count("needle", str(tree)) == 7
            with pytest.raises(SearchErrorPattern):
                await search.count("(", str(tree))
            async with await search.query("needle", str(tree), FIXED) as query:
                objects = [match async for match in await search.matches(query)]
                views = []
                async for batch in (await search.matches(query)).batches(max=3):
                    views += [view.copy() for view in batch]

                def key(match: Any) -> Any:
                    return (match.path, match.line)

                assert sorted(objects, key=key) == sorted(views, key=key)
                assert len(objects) == 7

    run(main())


def test_thousand_calls_run_concurrently(conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            calls = [service.echo_u64(number) for number in range(1000)]
            assert await asyncio.gather(*calls) == list(range(1000))
            # The calls run concurrently: none ends before all have started.
            held_up = [asyncio.create_task(service.held_up()) for _ in range(100)]
            while await service.waiting() < 100:
                await asyncio.sleep(0)
            await service.let_go()
            await asyncio.gather(*held_up)

    run(main())


def test_call_timeout_and_asyncio_timeout_raise_their_own_errors(
    conformance_library: str,
) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            with pytest.raises(thalweg.TimedOut):
                await service.never(timeout=0.05)
            with pytest.raises(TimeoutError) as caught:
                await asyncio.wait_for(service.never(), 0.05)
            assert not isinstance(caught.value, thalweg.Error)

    run(main())


def test_cancelling_the_task_cancels_the_call(conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            stream = await service.endless()
            task = asyncio.create_task(drain(stream))
            await asyncio.sleep(0.05)
            assert await service.running() == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            stream.close()
            await gone(service)
            tasks = [asyncio.create_task(service.never()) for _ in range(100)]
            await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ended)
            assert await service.echo_u8(3) == 3

    run(main())


async def drain(stream: thalweg.AsyncStream[int, int]) -> None:
    async for _ in stream:
        pass


def test_cancelled_wait_keeps_stream_open(search_library: str, tree: Path) -> None:
    async def main() -> None:
        async with (
            AsyncSearch.open(search_library) as search,
            await search.query("needle", str(tree), FIXED) as query,
        ):
            progress = await query.progress()
            assert (await anext(progress)).files == 0
            for _ in range(100):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        await anext(progress)
            waiting = asyncio.create_task(wait_for_progress(progress))
            await asyncio.sleep(0)
            stream = await search.matches(query)
            assert len([match async for match in stream]) == 7
            assert (await waiting).files > 0
            progress.close()

    async def wait_for_progress(progress: Any) -> Any:
        return await anext(progress)

    run(main())


def test_second_task_reading_one_stream_is_refused(
    search_library: str, tree: Path
) -> None:
    async def main() -> None:
        async with (
            AsyncSearch.open(search_library) as search,
            await search.query("needle", str(tree), FIXED) as query,
        ):
            progress = await query.progress()
            assert (await anext(progress)).files == 0

            async def read() -> None:
                await anext(progress)

            task = asyncio.create_task(read())
            await asyncio.sleep(0.01)
            with pytest.raises(thalweg.BadArgument, match="somebody else"):
                await anext(progress)
            task.cancel()
            await asyncio.wait([task])

    run(main())


def test_close_of_half_read_stream_stops_writer(conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            async with await service.endless() as stream:
                assert await anext(stream) == 0
            assert stream.closed
            assert [number async for number in stream] == []
            await gone(service)
            async with contextlib.aclosing(await service.endless()) as other:
                assert await anext(other) == 0
            await gone(service)
            async for number in await service.endless():
                if number == 1000:
                    break
            await gone(service)

    run(main())


def test_endless_stream_does_not_starve_event_loop(conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            stream = await service.endless()
            loop = asyncio.get_running_loop()
            read = most = turns = 0
            has_read = asyncio.Event()

            def turn() -> None:
                nonlocal read, turns
                turns += read > 0
                if turns == 20:
                    has_read.set()
                read = 0
                loop.call_soon(turn)

            async def count() -> None:
                nonlocal read, most
                async for _ in stream:
                    read += 1
                    most = max(most, read)

            turn()
            reader = asyncio.create_task(count())
            enough = asyncio.create_task(has_read.wait())
            await asyncio.wait([reader, enough], return_when=asyncio.FIRST_COMPLETED)
            assert not reader.done()
            # At most one batch and part of the next one between two loop iterations.
            assert 0 < most <= 512
            reader.cancel()
            await asyncio.wait([reader])
            stream.close()

    run(main())


def test_client_works_on_each_new_event_loop(conformance_library: str) -> None:
    client = AsyncConformance.open(conformance_library)

    async def main(number: int) -> int:
        return await client.echo_u32(number)

    assert [run_one(main(number)) for number in range(20)] == list(range(20))
    client.close()


def test_client_works_after_loop_with_pending_call_closes(
    conformance_library: str,
) -> None:
    client = AsyncConformance.open(conformance_library)
    counts = Conformance.open(conformance_library)
    loop = new_loop()

    async def forever() -> None:
        stream = await client.endless()
        await client.never()
        stream.close()

    task = loop.create_task(forever())
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert not task.done()
    # The coroutine is dropped as on any closed loop: asyncio's destructor calls the
    # exception handler.
    loop.set_exception_handler(lambda loop, context: None)
    task.get_coro().close()
    del task
    gc.collect()
    assert run_one(asyncio.wait_for(client.echo_u8(3), 5)) == 3
    client.close()
    counts.close()


def test_closed_event_loop_is_freed(conformance_library: str) -> None:
    client = AsyncConformance.open(conformance_library)
    loops = []
    for _ in range(3):
        loop = new_loop()
        assert loop.run_until_complete(client.echo_u8(1)) == 1
        loop.close()
        loops.append(weakref.ref(loop))
        del loop
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3
    client.close()


def test_event_loops_leak_no_descriptors(conformance_library: str) -> None:
    client = AsyncConformance.open(conformance_library)

    def fds() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    run_one(client.echo_u8(1))
    before = fds()
    for _ in range(50):
        run_one(client.echo_u8(1))
    gc.collect()
    assert fds() <= before + 1
    client.close()


def test_start_without_event_loop_raises(conformance_library: str) -> None:
    with Conformance.open(conformance_library) as client:
        from thalweg_conformance._methods import NOTHING

        with pytest.raises(RuntimeError, match="no running event loop"):
            NOTHING.start(client, None)


def test_pending_call_awaited_twice_raises(conformance_library: str) -> None:
    async def main() -> None:
        from thalweg_conformance._methods import ECHO_U8

        async with AsyncConformance.open(conformance_library) as service:
            pending = ECHO_U8.start(service, None, 3)
            assert await pending == 3
            with pytest.raises(RuntimeError, match="awaited before"):
                await pending

    run(main())


def test_calls_above_capacity_raise_overloaded(conformance_library: str) -> None:
    async def main() -> None:
        async with AsyncConformance.open(conformance_library) as service:
            tasks = [asyncio.create_task(service.never()) for _ in range(16_400)]
            await asyncio.sleep(0)
            refused = [task for task in tasks if task.done()]
            assert 16 <= len(refused) < 16_400
            for task in refused:
                with pytest.raises(thalweg.Overloaded) as caught:
                    task.result()
                assert caught.value.retryable
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert await service.echo_u8(1) == 1

    run(main())
