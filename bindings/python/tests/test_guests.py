"""A service in C or Nim, which is opened by its address, or the same one in another language.

`THALWEG_TEST_GUEST` is its path.
"""

import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import thalweg


@pytest.fixture(params=["probe", "probe_nim"])
def address(guests: Path, request: pytest.FixtureRequest) -> str:
    path = os.environ.get("THALWEG_TEST_GUEST")
    if path is not None:
        return f"thread:{path}"
    if request.param == "probe_nim" and shutil.which("nim") is None:
        pytest.skip("Nim is not installed")
    return f"thread:{guests / f'libguest_{request.param}.so'}"


@pytest.fixture(scope="module")
def package(guests: Path, core_library: str) -> Iterator[Any]:
    """The generated package, which no type checker knows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THALWEG_LIBRARY", core_library)
        patch.syspath_prepend(str(guests / "python"))
        yield importlib.import_module("thalweg_probe")
    sys.modules.pop("thalweg_probe", None)


def test_calls_of_a_guest(package: Any, address: str) -> None:
    with package.Probe.open(address) as probe, package.Probe.open(address) as other:
        assert [probe.add(3), probe.add(4), other.add(1)] == [3, 7, 1]
        assert probe.echo("h\u00e9llo") == "h\u00e9llo"
        assert probe.bytes(b"\0\1") == b"\0\1"
        assert probe.later(1, 42) == 42
        points = [package.Point("a", 1, 2), package.Point("bb", 3, 4)]
        moved = probe.move_all(points, package.Point("", 10, 20), None)
        assert moved == [package.Point("bb", 13, 24), package.Point("a", 11, 22)]


def test_resources_and_streams_of_a_guest(package: Any, address: str) -> None:
    with package.Probe.open(address) as probe:
        cell = probe.cell(5)
        assert [cell.add(10), cell.get()] == [15, 15]
        cell.close()
        assert sum(probe.numbers(1000)) == 499500
        assert [point.name for point in probe.points(2, 0)] == ["point 1", "point 2"]
        with pytest.raises(package.TroubleBecause) as caught:
            list(probe.points(3, 2))
        assert caught.value.payload == "it was asked to"
        assert probe.soon(7).result() == 7


def test_wrong_answers_of_a_guest(package: Any, address: str) -> None:
    with package.Probe.open(address) as probe:
        with pytest.raises(thalweg.GuestLost, match=r"probe\.misbehave"):
            probe.misbehave(1)
        with pytest.raises(thalweg.GuestPanicked, match="it went wrong"):
            probe.misbehave(5)
        assert probe.add(1) == 1


def test_wrong_addresses_are_refused(package: Any) -> None:
    with pytest.raises(thalweg.BadArgument, match="only guests in the process"):
        package.Probe.open("process:guest")
    with pytest.raises(thalweg.BadArgument, match="no/such/guest"):
        package.Probe.open("thread:/no/such/guest.so")


def test_library_of_a_guest_is_replaced(
    package: Any, guests: Path, tmp_path: Path
) -> None:
    library = tmp_path / "libguest.so"
    address = f"thread:{library}"
    shutil.copy(guests / "libguest_probe.so", library)
    with package.Probe.open(address) as probe:
        cell = probe.cell(5)
        assert [probe.add(3), probe.add(4)] == [3, 7]
        later = tmp_path / "libguest_later.so"
        shutil.copy(guests / "libguest_probe.so", later)
        thalweg.reload(address, f"thread:{later}")
        assert [probe.add(1), cell.get()] == [1, 5]
        other = probe.cell(6)
        thalweg.reload(address, drain_timeout=0)
        with pytest.raises(thalweg.Stale, match="reloaded"):
            other.get()
        assert [probe.add(1), cell.get()] == [1, 5]
        with pytest.raises(thalweg.VersionMismatch, match="not thalweg:probe"):
            thalweg.reload(address, f"thread:{guests / 'libguest_echo.so'}")
        with pytest.raises(thalweg.BadArgument, match="no/such/guest"):
            thalweg.reload(address, "thread:/no/such/guest.so")
        assert probe.add(1) == 2
    with pytest.raises(thalweg.BadArgument, match="is not open"):
        thalweg.reload("thread:/no/such/guest.so")
