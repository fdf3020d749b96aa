"""Finding the library inside the package of a wheel."""

from pathlib import Path

import pytest
import thalweg
from thalweg_search import Search


def test_given_library_path_is_used(tmp_path: Path) -> None:
    (tmp_path / "libother.so").touch()
    assert (
        thalweg.library_path("libmine.so", str(tmp_path / "client.py")) == "libmine.so"
    )


def test_library_path_finds_library_next_to_module(tmp_path: Path) -> None:
    library = tmp_path / "libmine.so"
    library.touch()
    (tmp_path / "client.py").touch()
    assert thalweg.library_path(None, str(tmp_path / "client.py")) == library.resolve()


def test_library_path_without_a_library_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="contains no library") as caught:
        thalweg.library_path(None, str(tmp_path / "client.py"))
    assert caught.value.filename == str(tmp_path.resolve())


def test_library_path_with_several_libraries_chooses_none(tmp_path: Path) -> None:
    for name in ("liba.so", "libb.so"):
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match="several libraries"):
        thalweg.library_path(None, str(tmp_path / "client.py"))


def test_open_without_a_path_needs_a_library_in_the_package() -> None:
    with pytest.raises(FileNotFoundError, match="contains no library"):
        Search.open()
