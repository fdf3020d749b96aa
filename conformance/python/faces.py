"""Clients of the generated package, for sync code and for asyncio."""

import asyncio
import dataclasses
import math
import os
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import thalweg
from oracle import AsyncBook, Book
from thalweg_conformance import AsyncConformance, Conformance

ROOT = Path(__file__).parents[2]
LIBRARIES = Path(os.environ.get("THALWEG_TEST_LIBRARIES", ROOT / "target" / "debug"))
LIBRARY = os.environ.get(
    "CONFORMANCE_SERVICE", str(LIBRARIES / "libthalweg_conformance.so")
)

Step = dict[str, Any]


class CancelNow(Exception):
    """Raised to cancel a call."""


def options(step: Step) -> dict[str, Any]:
    """The keyword arguments of a method that are not parameters of the function."""
    keywords: dict[str, Any] = {"timeout": step.get("timeout_ms", math.inf) / 1000}
    if "cancel_after_notices" in step:
        left = iter(range(step["cancel_after_notices"] - 1))

        def notify(elapsed: float) -> None:
            if next(left, None) is None:
                raise CancelNow

        keywords["on_notice"] = notify
    return keywords


@dataclasses.dataclass
class Seen:
    """The contents of a stream, at most `take` records."""

    take: int
    all: list[Any] = dataclasses.field(default_factory=list)
    controls: list[Any] = dataclasses.field(default_factory=list)

    def add(self, element: Any, control: bool) -> bool:
        """Whether enough records were read."""
        (self.controls if control else self.all).append(element)
        return len(self.all) == self.take


class Clients:
    """The two clients of a scenario."""

    client: Any = None
    other: Any = None

    def open(self) -> None:
        raise NotImplementedError

    def swap(self) -> None:
        """Switches to the other client, which is opened on its first use."""
        self.client, self.other = self.other, self.client
        if self.client is None:
            self.open()

    def close(self) -> None:
        self.client.close()
        if self.other is not None:
            self.other.close()


class SyncFace(Clients):
    """The client for sync code. A signal handler that raises cancels a call."""

    def __init__(self) -> None:
        self.open()
        self.threads = ThreadPoolExecutor(max_workers=128)

    def call(self, method: Any, arguments: list[Any], step: Step) -> Any:
        def handler(number: int, frame: object) -> None:
            raise CancelNow

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, step.get("cancel_after_ms", 0) / 1000)
        try:
            return method(*arguments, **options(step))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def start(self, method: Any, arguments: list[Any], step: Step) -> Future[Any]:
        return self.threads.submit(method, *arguments, **options(step))

    def end(self, started: Any) -> Any:
        return started.result()

    def read_owned(self, stream: thalweg.OwnedStream[Any, Any]) -> list[Any]:
        """All elements of a stream in a value."""
        return [*thalweg.Stream.of(stream)]

    def read(self, stream: Any, seen: Seen) -> None:
        for element in stream:
            if seen.add(element, stream.control):
                break

    def open(self) -> None:
        self.client = Conformance.open(LIBRARY, host=Book())

    def close(self) -> None:
        super().close()
        self.threads.shutdown()


class AsyncFace(Clients):
    """The client for asyncio. Cancelling the task cancels the call."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.open()

    def call(self, method: Any, arguments: list[Any], step: Step) -> Any:
        task = self.loop.create_task(method(*arguments, **options(step)))
        if "cancel_after_ms" in step:
            self.loop.call_later(step["cancel_after_ms"] / 1000, task.cancel)
        try:
            return self.loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise CancelNow from None

    def start(self, method: Any, arguments: list[Any], step: Step) -> asyncio.Task[Any]:
        task = self.loop.create_task(method(*arguments, **options(step)))
        # The call is submitted when its task first runs.
        self.loop.run_until_complete(asyncio.sleep(0))
        return task

    def end(self, started: Any) -> Any:
        return self.loop.run_until_complete(started)

    def read_owned(self, stream: thalweg.OwnedStream[Any, Any]) -> list[Any]:
        """All elements of a stream in a value."""
        seen = Seen(-1)
        self.read(thalweg.AsyncStream.of(stream), seen)
        return seen.all

    def read(self, stream: Any, seen: Seen) -> None:
        async def read() -> None:
            async for element in stream:
                if seen.add(element, stream.control):
                    break

        self.loop.run_until_complete(read())

    def open(self) -> None:
        self.client = AsyncConformance.open(LIBRARY, host=AsyncBook())

    def close(self) -> None:
        super().close()
        self.loop.close()


Face = SyncFace | AsyncFace
