"""Opening a library, and refusing an incompatible one."""

import gc
import re
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import thalweg
from thalweg_conformance import Conformance
from thalweg_search import Search

Make = Callable[..., str]


def refused(library: str) -> str:
    with pytest.raises(thalweg.VersionMismatch) as caught:
        Search.open(library)
    assert caught.value.code == 11
    return str(caught.value)


def test_library_of_another_version_error_names_both(make_fake: Make) -> None:
    text = refused(make_fake("other_version", '-DFAKE_VERSION="0.2.0"'))
    assert "thalweg:search 0.2.0" in text
    assert "thalweg:search 0.1.0" in text


def test_library_of_another_package_error_names_both(make_fake: Make) -> None:
    text = refused(make_fake("other_package", '-DFAKE_PACKAGE="thalweg:find"'))
    assert "thalweg:find 0.1.0" in text
    assert "thalweg:search 0.1.0" in text


def test_real_library_of_another_package_is_refused(conformance_library: str) -> None:
    assert "thalweg:conformance 0.1.0" in refused(conformance_library)


def test_library_of_another_abi_error_names_both(make_fake: Make) -> None:
    text = refused(make_fake("other_abi", "-DFAKE_ABI=7"))
    assert "ABI 7" in text
    assert f"ABI {thalweg.ABI}" in text


def test_table_too_small_is_refused(make_fake: Make) -> None:
    assert "64 bytes" in refused(make_fake("small", "-DFAKE_SIZE=64"))


def test_layout_mismatch_error_names_difference(make_fake: Make) -> None:
    text = refused(make_fake("other_layout"))
    assert "the library has no search.[method]query.progress" in text


def test_library_without_table_is_refused(make_fake: Make) -> None:
    assert "no table" in refused(make_fake("no_table", "-DFAKE_NO_TABLE"))


def test_library_without_entry_point_is_refused(make_fake: Make) -> None:
    text = refused(make_fake("no_symbol", "-DFAKE_NO_SYMBOL"))
    assert "tw_library" in text


def test_unloadable_library_raises_loader_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / "text.so").write_text("no library" * 100)
    (tmp_path / "folder.so").mkdir()
    for name, reason in [
        ("missing.so", "cannot open shared object file: No such file or directory"),
        ("text.so", "invalid ELF header"),
        ("folder.so", "cannot read file data: Is a directory"),
    ]:
        path = tmp_path / name
        text = re.escape(f"cannot load {path}: {reason}")
        with pytest.raises(OSError, match=f"^{text}$"):
            Search.open(path)


def test_missing_or_invalid_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"missing\.so"):
        Search.open(tmp_path / "missing.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(OSError, match=r"text\.so"):
        Search.open(tmp_path / "text.so")


def test_closed_client_refuses_calls(search_library: str) -> None:
    client = Search.open(search_library)
    assert not client.closed
    client.close()
    client.close()
    assert client.closed
    with pytest.raises(thalweg.Closed) as caught:
        client.escape("a")
    assert caught.value.code == 8


def test_with_statement_closes_client(search_library: str) -> None:
    with Search.open(search_library) as client:
        assert client.escape("a.b") == r"a\.b"
    assert client.closed


def test_client_constructor_is_refused() -> None:
    with pytest.raises(TypeError):
        Search()


def test_client_is_closed_when_dropped(conformance_library: str) -> None:
    with Conformance.open(conformance_library) as other:
        client = Conformance.open(conformance_library)
        counter = client.counter(1)
        gone = weakref.ref(client)
        del client
        assert gone() is not None, "a resource keeps its client"
        assert counter.value() == 1
        del counter
        gc.collect()
        assert gone() is None
        assert other.echo_u8(1) == 1


def test_client_of_another_package_is_refused(
    search: Search, service: Conformance
) -> None:
    from thalweg_search._methods import COUNT

    with pytest.raises(thalweg.BadArgument, match=r"search\.count.*conformance"):
        COUNT.call(service, None, "a", "b")
    assert search.escape("a") == "a"
