"""Calls that `together` submits as a group, with the loops of asyncio and uvloop."""

import asyncio
import ctypes
import os
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import thalweg
import uvloop
from thalweg_conformance import AsyncConformance, Conformance

ROOT = Path(__file__).parents[3]
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


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(asyncio.wait_for(main, 30))


class Proxy:
    """The conformance library behind a proxy that counts and refuses submissions."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.does = ctypes.CDLL(path)

    def submissions(self) -> int:
        """The number of submissions since the previous call."""
        count = self.does.proxy_submissions()
        assert isinstance(count, int)
        return count


@pytest.fixture(scope="module")
def proxy(
    conformance_library: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    path = str(tmp_path_factory.mktemp("proxy") / "libproxy_together.so")
    include = f"-I{ROOT / 'bindings' / 'c' / 'include'}"
    source = str(Path(__file__).with_name("proxy.c"))
    flags = ["-std=c99", "-fPIC", "-shared", include, source, "-o", path, "-ldl"]
    subprocess.run(["cc", *flags], check=True)
    os.environ["PROXY_OF"] = conformance_library
    yield Proxy(path)
    del os.environ["PROXY_OF"]


def test_grouped_calls_are_one_submission(proxy: Proxy) -> None:
    async def main() -> None:
        async with AsyncConformance.open(proxy.path) as client:
            proxy.submissions()
            wanted = list(range(100))
            assert await asyncio.gather(*map(client.echo_u32, wanted)) == wanted
            assert proxy.submissions() == 100
            with thalweg.together():
                calls = asyncio.gather(*map(client.echo_u32, wanted))
            assert await calls == wanted
            assert proxy.submissions() == 1
            # Calls after the block are submitted separately.
            assert await client.echo_u32(7) == 7
            async with asyncio.TaskGroup() as group:
                with thalweg.together():
                    tasks = [group.create_task(client.echo_u32(n)) for n in wanted]
            assert [task.result() for task in tasks] == wanted
            assert proxy.submissions() == 2

    run(main())


def test_grouped_calls_keep_their_order(proxy: Proxy) -> None:
    async def main() -> None:
        async with (
            AsyncConformance.open(proxy.path) as client,
            await client.counter(0) as counter,
        ):
            proxy.submissions()
            with thalweg.together():
                calls = asyncio.gather(*(counter.add(1) for _ in range(200)))
            assert await calls == list(range(1, 201))
            assert proxy.submissions() == 1

    run(main())


def test_await_inside_group_completes(proxy: Proxy) -> None:
    async def main() -> None:
        async with AsyncConformance.open(proxy.path) as client:
            proxy.submissions()
            with thalweg.together():
                assert await client.echo_u32(7) == 7
                with thalweg.together():
                    calls = asyncio.gather(*map(client.echo_u32, range(3)))
                assert await calls == [0, 1, 2]
            assert proxy.submissions() == 2

    run(main())


@pytest.mark.parametrize("place", [0, 1, 4])
def test_refused_call_in_group_keeps_others(proxy: Proxy, place: int) -> None:
    async def main() -> None:
        async with AsyncConformance.open(proxy.path) as client:
            with thalweg.together():
                calls = asyncio.gather(
                    *map(client.echo_u32, range(5)), return_exceptions=True
                )
            proxy.does.proxy_refuse(place)
            ended = await calls
            assert isinstance(ended.pop(place), thalweg.Overloaded)
            assert ended == [n for n in range(5) if n != place]

    run(main())


def test_bad_argument_in_group_raises_at_once(proxy: Proxy) -> None:
    async def main() -> None:
        async with AsyncConformance.open(proxy.path) as client:
            with thalweg.together():
                wrong = client.echo_u32(2**32)
                with pytest.raises(OverflowError):
                    wrong.send(None)
                late = asyncio.ensure_future(client.echo_u32(7, timeout=-1))
            with pytest.raises(thalweg.TimedOut):
                await late

    run(main())


def test_abandoned_call_in_group_is_not_submitted(proxy: Proxy) -> None:
    async def main() -> None:
        async with AsyncConformance.open(proxy.path) as client:
            assert await client.echo_u32(7) == 7
            proxy.submissions()
            with thalweg.together():
                call = client.echo_u32(8)
                call.send(None)
                call.close()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert proxy.submissions() == 0
            assert await client.echo_u32(9) == 9

    run(main())


def test_close_and_sync_wait_follow_grouped_calls(proxy: Proxy) -> None:
    async def close(client: AsyncConformance) -> None:
        client.close()
        assert proxy.submissions() == 1

    async def wait(client: Conformance) -> None:
        assert client.echo_u32(3) == 3
        assert proxy.submissions() == 2

    async def main() -> None:
        client = AsyncConformance.open(proxy.path)
        with Conformance.open(proxy.path) as other:
            assert await client.echo_u32(7) == 7
            proxy.submissions()
            with thalweg.together():
                first = asyncio.ensure_future(client.echo_u32(8))
                waits = asyncio.ensure_future(wait(other))
            assert await first == 8
            await waits
            with thalweg.together():
                last = asyncio.ensure_future(client.echo_u32(9))
                closes = asyncio.ensure_future(close(client))
            # The call was submitted; the close may come before or after the reply.
            (ended,) = await asyncio.gather(last, return_exceptions=True)
            assert ended == 9 or isinstance(ended, thalweg.Cancelled)
            await closes

    run(main())


def test_group_ends_with_its_event_loop(proxy: Proxy) -> None:
    async def main() -> None:
        async with AsyncConformance.open(proxy.path) as client:
            with thalweg.together():
                assert await client.echo_u32(7) == 7

    left = thalweg.together()

    async def leave() -> None:
        left.__enter__()

    run(leave())
    run(main())
    with pytest.raises(RuntimeError):
        thalweg.together().__enter__()
