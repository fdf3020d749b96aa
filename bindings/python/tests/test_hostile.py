"""Malformed replies: decoding raises or returns a value; the client stays usable."""

import contextlib
import ctypes
import gc
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import thalweg
from thalweg_conformance import Conformance
from thalweg_conformance import types as t

Call = Callable[[Conformance], object]

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "c" / "include"
BYTE, SIZE, COUNT, STRIDE, SLOTS = 1, 2, 3, 4, 5


class Hostile:
    """A library that returns the replies that the test sets."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.functions = ctypes.CDLL(path)
        self.functions.last.restype = ctypes.c_uint64
        self.functions.shown.restype = ctypes.c_uint64

    def reply(self, data: bytes) -> None:
        self.functions.reply(data, ctypes.c_uint64(len(data)))

    def last(self) -> bytes:
        buffer = ctypes.create_string_buffer(65536)
        size = self.functions.last(buffer, ctypes.c_uint64(len(buffer)))
        return buffer.raw[:size]

    def accepts(self, method: str, part: int, data: bytes) -> bool:
        """Whether the core decodes `data` as a value of this part of `method`."""
        name = f"conformance.{method}".encode()
        code: int = self.functions.judge(name, part, data, ctypes.c_uint64(len(data)))
        assert code in (0, 10)
        return code == 0

    def change(self, what: int, at: int, value: int) -> None:
        self.functions.change(what, ctypes.c_uint64(at), ctypes.c_uint64(value))

    def honest(self) -> None:
        self.functions.honest()


@pytest.fixture(scope="module")
def hostile(
    conformance_library: str, tmp_path_factory: pytest.TempPathFactory
) -> Hostile:
    path = tmp_path_factory.mktemp("hostile") / "libhostile.so"
    flags = ["-std=c99", "-fPIC", "-shared", f"-I{INCLUDE}"]
    command = ["cc", *flags, str(HERE / "hostile.c"), "-o", str(path), "-ldl"]
    subprocess.run(command, check=True)
    library = Hostile(str(path))
    assert library.functions.wrap(conformance_library.encode()) == 0
    return library


@pytest.fixture
def client(hostile: Hostile) -> Iterator[Conformance]:
    with Conformance.open(hostile.path) as client:
        yield client
        hostile.honest()


POINT = t.Point(x=1, y=-2)
SHAPES: list[t.Shape] = [
    t.ShapeCircle(1.5),
    t.ShapeLine((POINT, POINT)),
    t.ShapeLabel("text"),
    t.ShapePolygon([POINT, POINT, POINT]),
    t.ShapeNothing(),
]
NESTED = t.Nested(
    text="abc",
    bytes=b"\x00\xff",
    names=["a", "bc"],
    grid=[[1, 2], [], [3]],
    maybe="m",
    twice=thalweg.Some(None),
    outcomes=[thalweg.Ok(POINT), thalweg.Err("no")],
    pairs=[("a", b"b"), ("c", None)],
    shapes=SHAPES,
    color=t.Color.GREEN,
    rights=t.Rights.READ | t.Rights.WRITE,
    aliased=["z"],
)
CALLS: dict[str, Call] = {
    "echo-bool": lambda client: client.echo_bool(True),
    "echo-char": lambda client: client.echo_char("x"),
    "echo-string": lambda client: client.echo_string("h\u00e9"),
    "echo-names": lambda client: client.echo_names(["ab", ""]),
    "echo-option": lambda client: client.echo_option("text"),
    "echo-option-twice": lambda client: client.echo_option_twice(thalweg.Some(7)),
    "echo-result-error": lambda client: client.echo_result_error(
        [thalweg.Ok(None), thalweg.Err("why")]
    ),
    "echo-tuple": lambda client: client.echo_tuple((255, "text", 1.5, "c")),
    "echo-shapes": lambda client: client.echo_shapes(SHAPES),
    "echo-colors": lambda client: client.echo_colors([t.Color.RED, t.Color.GREEN]),
    "echo-rights": lambda client: client.echo_rights(t.Rights.WRITE),
    "echo-wide": lambda client: client.echo_wide(t.Wide.B31),
    "echo-nested": lambda client: client.echo_nested(NESTED),
    "count": lambda client: client.count(0, 3).close(),
    "[constructor]counter": lambda client: client.counter(5).close(),
}


def damaged(good: bytes) -> Iterator[bytes]:
    """Variants of `good`: cut at every byte, one byte longer, and each byte changed."""
    yield from (good[:size] for size in range(len(good)))
    yield good + b"\0"
    for at, byte in enumerate(good):
        for other in {0, 1, 0x7F, 0x80, 0xFF, byte ^ 1} - {byte}:
            yield good[:at] + bytes([other]) + good[at + 1 :]


def is_refused(call: Call, client: Conformance) -> bool:
    """Whether `call` raises `BadArgument`. Any other exception fails the test."""
    try:
        call(client)
    except thalweg.BadArgument:
        return True
    return False


@pytest.mark.parametrize("name", CALLS)
def test_damaged_result_is_refused_as_by_core(
    client: Conformance, hostile: Hostile, name: str
) -> None:
    call = CALLS[name]
    right = call(client)
    good = hostile.last()
    hostile.reply(good)
    assert call(client) == right
    for number, data in enumerate(damaged(good)):
        hostile.reply(data)
        refused = is_refused(call, client)
        if number <= len(good):
            assert refused, "the size differs from the declared one"
        elif name.startswith("echo"):
            assert refused is not hostile.accepts(name, 1, data), data.hex()
    hostile.honest()
    assert call(client) == right


def test_damaged_error_is_refused_as_by_core(
    client: Conformance, hostile: Hostile
) -> None:
    how = t.FailureAt(("there", POINT))
    with pytest.raises(t.Failure):
        client.fail(how)
    good = hostile.last()
    for data in damaged(good):
        hostile.reply(data)
        with pytest.raises(thalweg.Error) as caught:
            client.fail(how)
        # The call always raises.
        assert isinstance(caught.value, t.Failure | thalweg.BadArgument)
        refused = isinstance(caught.value, thalweg.BadArgument)
        assert refused is not hostile.accepts("fail", 2, data), data.hex()
    hostile.honest()
    with pytest.raises(t.Failure):
        client.fail(how)


def test_damaged_batch_record_is_refused_or_decoded(
    client: Conformance, hostile: Hostile
) -> None:
    hostile.change(BYTE, 0, 0)
    with client.items(4) as stream:
        next(stream.batches()).objects()
    size = hostile.functions.shown()
    slots = 4 * 32
    places = [*range(min(slots, size)), *range(max(size - 64, 0), size)]
    for at in places:
        for value in (1, 0x7F, 0xFF):
            hostile.change(BYTE, at, value)
            with client.items(4) as stream:
                batch = next(stream.batches())
                with contextlib.suppress(thalweg.BadArgument):
                    batch.objects()
                for view in batch:
                    for field in ("number", "name", "tags", "blob"):
                        with contextlib.suppress(thalweg.BadArgument):
                            getattr(view, field)
                with contextlib.suppress(thalweg.BadArgument):
                    batch.__arrow_c_array__()


@pytest.mark.parametrize(
    ("what", "values"),
    [
        (SIZE, [0, 1, 31]),
        (COUNT, [2**20, 2**31, 2**32 - 1]),
        (STRIDE, [2**20, 2**31, 2**32 - 1]),
        (SLOTS, [2**32, 2**64 - 8, 2**40]),
    ],
)
def test_damaged_batch_is_refused(
    client: Conformance, hostile: Hostile, what: int, values: list[int]
) -> None:
    for value in values:
        hostile.change(what, 0, value)
        with client.items(4) as stream, pytest.raises(thalweg.BadArgument):
            next(stream.batches())
        gc.collect()
    hostile.honest()
    assert len(list(client.items(4))) == 4
