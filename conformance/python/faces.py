"""The two faces of the generated package: sync code, and asyncio."""

import asyncio
import dataclasses
import math
import os
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from oracle import AsyncBook, Book
from thalweg_conformance import AsyncConformance, Conformance

ROOT = Path(__file__).parents[2]
LIBRARIES = Path(os.environ.get("THALWEG_TEST_LIBRARIES", ROOT / "target" / "debug"))
LIBRARY = LIBRARIES / "libthalweg_conformance.so"

Step = dict[str, Any]


class CancelNow(Exception):
    """How a call ends that the caller cancelled."""


@dataclasses.dataclass
class Seen:
    """What came out of a stream, `take` records at most."""

    take: int
    all: list[Any] = dataclasses.field(default_factory=list)
    controls: list[Any] = dataclasses.field(default_factory=list)

    def add(self, element: Any, control: bool) -> bool:
        """Whether that was enough."""
        (self.controls if control else self.all).append(element)
        return len(self.all) == self.take


class SyncFace:
    """The client for sync code: a signal handler that raises is how a call is cancelled."""

    def __init__(self) -> None:
        self.open()
        self.threads = ThreadPoolExecutor(max_workers=128)

    def call(self, method: Any, arguments: list[Any], step: Step) -> Any:
        def handler(number: int, frame: object) -> None:
            raise CancelNow

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, step.get("cancel_after_ms", 0) / 1000)
        try:
            return method(*arguments, timeout=step.get("timeout_ms", math.inf) / 1000)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def start(self, method: Any, arguments: list[Any], step: Step) -> Future[Any]:
        seconds = step.get("timeout_ms", math.inf) / 1000
        return self.threads.submit(method, *arguments, timeout=seconds)

    def end(self, started: Any) -> Any:
        return started.result()

    def read(self, stream: Any, seen: Seen) -> None:
        for element in stream:
            if seen.add(element, stream.control):
                break

    def open(self) -> None:
        self.client: Any = Conformance.open(LIBRARY, host=Book())

    def close(self) -> None:
        self.client.close()
        self.threads.shutdown()


class AsyncFace:
    """The client for asyncio: to cancel a call is to cancel its task."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.open()

    def call(self, method: Any, arguments: list[Any], step: Step) -> Any:
        seconds = step.get("timeout_ms", math.inf) / 1000
        task = self.loop.create_task(method(*arguments, timeout=seconds))
        if "cancel_after_ms" in step:
            self.loop.call_later(step["cancel_after_ms"] / 1000, task.cancel)
        try:
            return self.loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise CancelNow from None

    def start(self, method: Any, arguments: list[Any], step: Step) -> asyncio.Task[Any]:
        seconds = step.get("timeout_ms", math.inf) / 1000
        task = self.loop.create_task(method(*arguments, timeout=seconds))
        # It is submitted in its first turn.
        self.loop.run_until_complete(asyncio.sleep(0))
        return task

    def end(self, started: Any) -> Any:
        return self.loop.run_until_complete(started)

    def read(self, stream: Any, seen: Seen) -> None:
        async def read() -> None:
            async for element in stream:
                if seen.add(element, stream.control):
                    break

        self.loop.run_until_complete(read())

    def open(self) -> None:
        self.client: Any = AsyncConformance.open(LIBRARY, host=AsyncBook())

    def close(self) -> None:
        self.client.close()
        self.loop.close()


Face = SyncFace | AsyncFace
