"""Calls on a full queue whose policy is to wait for capacity."""

import asyncio
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance

ROOT = Path(__file__).parents[3]
TW_SUBMIT_BLOCK = 2


class Proxy:
    """The conformance library behind a proxy that controls its submissions."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.does = ctypes.CDLL(path)


@pytest.fixture(scope="module")
def proxy(
    conformance_library: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    path = str(tmp_path_factory.mktemp("proxy") / "libproxy.so")
    include = f"-I{ROOT / 'bindings' / 'c' / 'include'}"
    source = str(Path(__file__).with_name("proxy.c"))
    flags = ["-std=c99", "-fPIC", "-shared", include, source, "-o", path, "-ldl"]
    subprocess.run(["cc", *flags], check=True)
    os.environ["PROXY_OF"] = conformance_library
    yield Proxy(path)
    del os.environ["PROXY_OF"]


def test_only_sync_call_blocks_on_full_queue(
    proxy: Proxy,
) -> None:
    with Conformance.open(proxy.path) as client:
        assert client.echo_u32(7) == 7
        assert proxy.does.proxy_flags() == TW_SUBMIT_BLOCK

    async def on_a_loop() -> None:
        async with AsyncConformance.open(proxy.path) as client:
            assert await client.echo_u32(7) == 7
            assert proxy.does.proxy_flags() == 0

    asyncio.run(on_a_loop())


def test_other_threads_run_while_call_waits_for_capacity(proxy: Proxy) -> None:
    def let_go() -> None:
        while not proxy.does.proxy_holds():
            time.sleep(0.001)
        proxy.does.proxy_go()

    with Conformance.open(proxy.path) as client:
        proxy.does.proxy_hold()
        other = threading.Thread(target=let_go)
        other.start()
        assert client.echo_u32(7) == 7
        other.join()


def test_client_closed_during_submission_raises_closed(
    proxy: Proxy,
) -> None:
    client = Conformance.open(proxy.path)

    def close() -> None:
        while not proxy.does.proxy_holds():
            time.sleep(0.001)
        client.close()
        proxy.does.proxy_go()

    proxy.does.proxy_hold()
    other = threading.Thread(target=close)
    other.start()
    with pytest.raises(thalweg.Closed):
        client.echo_u32(7)
    other.join()


def test_signal_is_handled_while_call_waits_for_capacity(proxy: Proxy) -> None:
    class Enough(Exception):
        pass

    seen = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if len(seen) == 2:
            raise Enough

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with Conformance.open(proxy.path) as client:
            proxy.does.proxy_interrupt()
            assert client.echo_u32(7) == 7
            assert len(seen) == 1
            proxy.does.proxy_interrupt()
            with pytest.raises(Enough):
                client.echo_u32(8)
            assert client.echo_u32(9) == 9
    finally:
        signal.signal(signal.SIGUSR1, before)
