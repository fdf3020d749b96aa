"""Converting the values of a method to CBOR and back."""

from pathlib import Path

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance, _methods
from thalweg_conformance import types as t
from thalweg_search import Search

POINT = t.Point(x=7, y=-8)


def test_value_round_trips_through_cbor(service: Conformance) -> None:
    method = _methods.ECHO_POINT
    data = method.to_cbor(service, "result", POINT)
    assert data == b"\xa2\x61x\x07\x61y\x27"
    assert method.from_cbor(service, "result", data) == POINT
    # The decoder also accepts other encodings of the same value.
    assert method.from_cbor(
        service, "result", b"\xbf\x61y\x38\x07\x61x\x18\x07\xff"
    ) == (POINT)


def test_every_part_of_method_round_trips_through_cbor(service: Conformance) -> None:
    several = _methods.SEVERAL
    arguments = (1, "text", [2, 3], POINT)
    data = several.to_cbor(service, "params", arguments)
    assert several.from_cbor(service, "params", data) == arguments
    for failure in (t.FailureUnknown(None), t.FailureAt(("there", POINT))):
        payload = failure.payload if isinstance(failure, t.FailureAt) else None
        data = _methods.FAIL.to_cbor(service, "error", failure)
        back = _methods.FAIL.from_cbor(service, "error", data)
        assert type(back) is type(failure)
        assert back.payload == payload
    item = t.Item(number=1, name="one", tags=["a"], blob=None)
    data = _methods.ITEMS.to_cbor(service, "element", item)
    assert _methods.ITEMS.from_cbor(service, "element", data) == item
    nothing = _methods.NOTHING
    assert nothing.from_cbor(
        service, "params", nothing.to_cbor(service, "params", ())
    ) == (())


def test_value_larger_than_first_buffer_round_trips(service: Conformance) -> None:
    names = ["name" * 1000] * 100
    data = _methods.ECHO_NAMES.to_cbor(service, "result", names)
    assert len(data) > 400_000
    assert _methods.ECHO_NAMES.from_cbor(service, "result", data) == names
    bools = [True] * 10_000
    data = _methods.ECHO_BOOLS.to_cbor(service, "result", bools)
    assert _methods.ECHO_BOOLS.from_cbor(service, "result", data) == bools
    numbers = [5] * 100_000
    data = b"\x9a\x00\x01\x86\xa0" + b"\x05" * 100_000
    assert _methods.ECHO_NUMBERS.from_cbor(service, "result", data) == numbers


def test_cbor_accepts_asyncio_client(conformance_library: str) -> None:
    service = AsyncConformance.open(conformance_library)
    assert _methods.ECHO_BOOL.to_cbor(service, "result", True) == b"\xf5"
    service.close()


@pytest.mark.parametrize(
    "data",
    [b"", b"\xa1", b"\xa2\x61x\x07\x61y", b"\xff", b"\xa0", b"\xf5\x00", b"\x1b"],
)
def test_invalid_cbor_is_refused(service: Conformance, data: bytes) -> None:
    with pytest.raises(thalweg.BadArgument):
        _methods.ECHO_POINT.from_cbor(service, "result", data)
    assert service.echo_point(POINT) == POINT


def test_value_without_cbor_is_refused(
    service: Conformance, search: Search, tree: Path
) -> None:
    method = _methods.ECHO_POINT
    with pytest.raises(ValueError, match="none of params"):
        method.to_cbor(service, "results", POINT)
    for part in ("error", "element"):
        with pytest.raises(TypeError, match="has no such value"):
            method.to_cbor(service, part, POINT)
    with pytest.raises(TypeError):
        method.to_cbor(service, "params", POINT)
    with pytest.raises(TypeError):
        method.to_cbor(service, "result", "text")
    with pytest.raises(thalweg.BadArgument, match="another package"):
        method.to_cbor(search, "result", POINT)
    with service.counter(1) as counter, pytest.raises(thalweg.BadArgument):
        _methods.COUNTER_ADD.to_cbor(counter, "params", (counter, 1))
