"""Runs `scenarios.json` with the generated package, from sync code and on asyncio."""

import contextlib
import inspect
import json
import time
import typing
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import thalweg
from faces import ROOT, AsyncFace, CancelNow, Face, Seen, Step, SyncFace
from thalweg_conformance import Failure, _methods
from values import class_name, constant, named, opened, raised, value

SCENARIOS = json.loads((ROOT / "conformance" / "scenarios.json").read_text())

ENDINGS: dict[str, tuple[type[Exception], ...]] = {
    "error": (thalweg.ServiceError,),
    "argument": (ValueError, TypeError, OverflowError),
    "cancelled": (CancelNow, thalweg.Cancelled),
}


def run(face: Face, kept: dict[str, Any], step: Step) -> None:
    """Executes a step, repeatedly if it has `within_ms`."""
    if "drop" in step:
        kept.pop(step["drop"]).close()
    elif "close" in step:
        face.client.close()
    elif "open" in step:
        face.client.close()
        face.open()
    elif "other" in step:
        face.swap()
    elif "repeat" in step:
        for one in step["steps"] * step["repeat"]:
            run(face, kept, one)
    elif "start" in step:
        for _ in range(step.get("times", 1)):
            start(face, kept, step)
    elif "await" in step:
        for started, begun, method in kept.pop(step["await"]):
            finish(face, kept, begun, method, partial(face.end, started))
    elif "call" not in step:
        stream_step(face, kept, step)
    else:
        deadline = time.monotonic() + step.get("within_ms", 0) / 1000
        while time.monotonic() < deadline:
            with contextlib.suppress(AssertionError):
                return call(face, kept, step)
            time.sleep(0.01)
        call(face, kept, step)
    return None


def call(face: Face, kept: dict[str, Any], step: Step) -> None:
    """Makes a call and checks its result."""
    method, arguments = prepare(face, kept, step)
    if "arguments" in step:
        name = constant(step["call"].rpartition("]")[2].replace(".", "-"))
        message = getattr(_methods, name).message(*arguments)
        assert message.hex() == step["arguments"]
    finish(face, kept, step, method, lambda: face.call(method, arguments, step))


def start(face: Face, kept: dict[str, Any], step: Step) -> None:
    """Starts a call and leaves it outstanding."""
    method, arguments = prepare(face, kept, step)
    started = (face.start(method, arguments, step), step, method)
    kept.setdefault(step["start"], []).append(started)


def finish(face: Face, kept: dict[str, Any], step: Step, method: Any, end: Any) -> None:
    """The outcome of a call. `end` returns its result."""
    result, ended = None, None
    try:
        result = end()
        result = getattr(result, "stream", result)
    except Exception as error:
        # Without its frames, which would keep the objects of the call alive.
        ended = error.with_traceback(None)
    hint = typing.get_type_hints(method)["return"]
    if "stream" in step and ended is None:
        read(face, result, typing.get_args(hint)[0], step["stream"])
        return
    check_ending(step.get("stream", step), ended)
    if "bind" in step:
        kept[step["bind"]] = result
    if "ok" in step:
        assert repr(opened(result, face.read_owned)) == repr(value(hint, step["ok"]))


def read(face: Face, stream: Any, hint: Any, expected: Step) -> None:
    """Reads and checks a stream."""
    seen, ended = Seen(expected.get("take", -1)), None
    try:
        face.read(stream, seen)
        if "take" in expected:
            stream.close()
    except Exception as error:
        ended = error.with_traceback(None)
    check_ending(expected, ended)
    for key, came in (("elements", seen.all), ("controls", seen.controls)):
        if key in expected:
            assert came == [value(hint, item) for item in expected[key]]
    count, lost = len(seen.all), stream.lost
    assert count == expected.get("count", count)
    assert count + lost == expected.get("total", count + lost)
    assert stream.gap_reason == expected.get("gap", stream.gap_reason)
    for key, place in (("first", 0), ("last", -1)):
        if key in expected:
            assert seen.all
            assert seen.all[place] == value(hint, expected[key])


def stream_step(face: Face, kept: dict[str, Any], step: Step) -> None:
    """Executes a step about a stored stream of numbers.

    There are no callbacks: records are read later.
    """
    if "read" in step:
        read(face, kept.pop(step["read"]), int, step["stream"])
    elif "tee" in step:
        kept[step["bind"]] = kept[step["tee"]].tee()
    elif "stats" in step:
        stats = kept[step["stats"]].stats()
        for key in step.keys() - {"stats"}:
            came = getattr(stats, key)
            assert (sum(came) if key == "lost" else came) == step[key], key


def prepare(face: Face, kept: dict[str, Any], step: Step) -> Any:
    """The method and its arguments."""
    kind, _, name = step["call"].rpartition("]")
    given, target = step.get("params", []), face.client
    if kind in ("[method", "[destructor"):
        target, given = kept[given[0]["resource"]], given[1:]
        name = name.partition(".")[2] or "destroy"
    method = getattr(target, name.replace(".", "_").replace("-", "_"))
    hints = typing.get_type_hints(method)
    arguments = []
    for parameter, item in zip(
        inspect.signature(method).parameters, given, strict=False
    ):
        arguments.append(value(hints[parameter], named(kept, item)))
    return method, arguments


def check_ending(expected: Step, ended: Exception | None) -> None:
    names = expected.get("ends", "error" if "error" in expected else "ok")
    names = names if isinstance(names, list) else [names]
    if ended is None or names == ["ok"]:
        if ended is not None:
            raise ended
        assert "ok" in names
        return
    classes = tuple[type[Exception], ...]()
    for name in set(names) - {"ok"}:
        classes += ENDINGS.get(name) or (getattr(thalweg, class_name(name)),)
    assert isinstance(ended, classes)
    assert expected.get("message", "") in str(ended)
    if expected.get("error") is not None:
        assert repr(ended) == repr(raised(Failure, expected["error"]))


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
