"""Runs `scenarios.json` with the generated package, from sync code and on asyncio."""

import asyncio
import contextlib
import inspect
import json
import math
import os
import signal
import time
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import thalweg
from oracle import AsyncBook, Book
from thalweg_conformance import AsyncConformance, Conformance, Failure, _methods
from values import class_name, constant, named, raised, value

ROOT = Path(__file__).parents[2]
LIBRARIES = Path(os.environ.get("THALWEG_TEST_LIBRARIES", ROOT / "target" / "debug"))
LIBRARY = LIBRARIES / "libthalweg_conformance.so"
SCENARIOS = json.loads((ROOT / "conformance" / "scenarios.json").read_text())

Step = dict[str, Any]


class CancelNow(Exception):
    """How a call ends that the caller cancelled."""


ENDINGS: dict[str, tuple[type[Exception], ...]] = {
    "error": (thalweg.ServiceError,),
    "argument": (ValueError, TypeError, OverflowError),
    "cancelled": (CancelNow, thalweg.Cancelled),
}


class SyncFace:
    """The client for sync code: a signal handler that raises is how a call is cancelled."""

    def __init__(self) -> None:
        self.client: Any = Conformance.open(LIBRARY, host=Book())

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

    def read(self, stream: Any, into: list[Any], take: int) -> None:
        for element in stream:
            into.append(element)
            if len(into) == take:
                break

    def close(self) -> None:
        self.client.close()


class AsyncFace:
    """The client for asyncio: to cancel a call is to cancel its task."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.client: Any = AsyncConformance.open(LIBRARY, host=AsyncBook())

    def call(self, method: Any, arguments: list[Any], step: Step) -> Any:
        seconds = step.get("timeout_ms", math.inf) / 1000
        task = self.loop.create_task(method(*arguments, timeout=seconds))
        if "cancel_after_ms" in step:
            self.loop.call_later(step["cancel_after_ms"] / 1000, task.cancel)
        try:
            return self.loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise CancelNow from None

    def read(self, stream: Any, into: list[Any], take: int) -> None:
        async def read() -> None:
            async for element in stream:
                into.append(element)
                if len(into) == take:
                    break

        self.loop.run_until_complete(read())

    def close(self) -> None:
        self.client.close()
        self.loop.close()


Face = SyncFace | AsyncFace


def run(face: Face, kept: dict[str, Any], step: Step) -> None:
    """One step, again and again where it says `within_ms`."""
    if "drop" in step:
        kept.pop(step["drop"]).close()
    elif "close" in step:
        face.client.close()
    else:
        deadline = time.monotonic() + step.get("within_ms", 0) / 1000
        while time.monotonic() < deadline:
            with contextlib.suppress(AssertionError):
                return call(face, kept, step)
            time.sleep(0.01)
        call(face, kept, step)
    return None


def call(face: Face, kept: dict[str, Any], step: Step) -> None:
    """A call, and all that is said about it."""
    method, arguments, hints = prepare(face, kept, step)
    if "arguments" in step:
        name = constant(step["call"].rpartition("]")[2].replace(".", "-"))
        message = getattr(_methods, name).message(*arguments)
        assert message.hex() == step["arguments"]
    stream, seen = step.get("stream"), list[Any]()
    result, ended = None, None
    try:
        result = face.call(method, arguments, step)
        result = getattr(result, "stream", result)
        if stream is not None:
            face.read(result, seen, stream.get("take", -1))
            if "take" in stream:
                result.close()
    except Exception as error:
        # Without its frames, which would keep it, and with it what it holds.
        ended = error.with_traceback(None)
    check_ending(step if stream is None else stream, ended)
    if "bind" in step:
        kept[step["bind"]] = result
    if "ok" in step:
        assert repr(result) == repr(value(hints["return"], step["ok"]))
    if stream is not None:
        element = typing.get_args(hints["return"])[0]
        lost = result.lost if result is not None else 0
        check_elements(stream, seen, lost, element)


def prepare(face: Face, kept: dict[str, Any], step: Step) -> Any:
    """The method, its arguments, and its hints."""
    kind, _, name = step["call"].rpartition("]")
    given, target = step.get("params", []), face.client
    if kind == "[method":
        target, given = kept[given[0]["resource"]], given[1:]
        name = name.partition(".")[2]
    method = getattr(target, name.replace(".", "_").replace("-", "_"))
    hints = typing.get_type_hints(method)
    arguments = []
    for parameter, item in zip(
        inspect.signature(method).parameters, given, strict=False
    ):
        arguments.append(value(hints[parameter], named(kept, item)))
    return method, arguments, hints


def check_ending(expected: Step, ended: Exception | None) -> None:
    name = expected.get("ends", "error" if "error" in expected else "ok")
    if name == "ok":
        if ended is not None:
            raise ended
        return
    classes = ENDINGS.get(name) or getattr(thalweg, class_name(name))
    assert isinstance(ended, classes)
    assert expected.get("message", "") in str(ended)
    if expected.get("error") is not None:
        assert repr(ended) == repr(raised(Failure, expected["error"]))


def check_elements(stream: Step, seen: list[Any], lost: int, hint: Any) -> None:
    if "elements" in stream:
        assert seen == [value(hint, item) for item in stream["elements"]]
    assert len(seen) == stream.get("count", len(seen))
    assert len(seen) + lost == stream.get("total", len(seen) + lost)
    for key, place in (("first", 0), ("last", -1)):
        assert key not in stream or seen[place] == value(hint, stream[key])


@pytest.fixture(params=[SyncFace, AsyncFace], ids=["sync", "asyncio"])
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    face = request.param()
    yield face
    face.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_scenario(scenario: dict[str, Any], face: Face) -> None:
    kept = dict[str, Any]()
    for step in scenario["steps"]:
        run(face, kept, step)
