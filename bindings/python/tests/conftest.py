"""Libraries and folders that the tests use.

`test.sh` builds the libraries; `THALWEG_TEST_LIBRARIES` is their folder.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from thalweg_conformance import Conformance
from thalweg_search import Search

ROOT = Path(__file__).parents[3]
LIBRARIES = Path(os.environ.get("THALWEG_TEST_LIBRARIES", ROOT / "target" / "debug"))


@pytest.fixture(scope="session")
def program() -> str:
    """The path of `thalweg`, which generates packages."""
    return os.environ.get("THALWEG_TEST_PROGRAM", str(LIBRARIES / "thalweg"))


@pytest.fixture(scope="session")
def core_library() -> str:
    """The path of the library that opens addresses."""
    return str(LIBRARIES / "libthalweg.so")


@pytest.fixture(scope="session")
def guests() -> Path:
    """The folder of the built guests."""
    return Path(os.environ.get("THALWEG_TEST_GUESTS", LIBRARIES.parent / "guests"))


@pytest.fixture(scope="session")
def search_library() -> str:
    return str(LIBRARIES / "libthalweg_search.so")


@pytest.fixture(scope="session")
def echo_library() -> str:
    return str(LIBRARIES / "libthalweg_echo.so")


@pytest.fixture(scope="session")
def feed_library() -> str:
    return str(LIBRARIES / "libthalweg_feed.so")


@pytest.fixture(scope="session")
def hello_library() -> str:
    return str(LIBRARIES / "libthalweg_hello.so")


@pytest.fixture(scope="session")
def recipes_library() -> str:
    return str(LIBRARIES / "libthalweg_recipes.so")


@pytest.fixture(scope="session")
def conformance_library() -> str:
    return str(LIBRARIES / "libthalweg_conformance.so")


@pytest.fixture
def search(search_library: str) -> Iterator[Search]:
    with Search.open(search_library) as client:
        yield client


@pytest.fixture
def service(conformance_library: str) -> Iterator[Conformance]:
    with Conformance.open(conformance_library) as client:
        yield client


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven lines with `needle` in four files, one of them hidden, one not UTF-8."""
    root = tmp_path_factory.mktemp("tree")
    (root / "a.txt").write_text("needle\nhay\nhay needle needle\n")
    (root / ".hidden").write_text("a needle\n")
    (root / "sub").mkdir()
    (root / "sub" / "b.txt").write_text("needle\n" * 3 + "hay\n")
    (root / "bytes.txt").write_bytes(b"\xff needle \xfe\n")
    return root


@pytest.fixture(scope="session")
def large_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 files of 4,000 lines, each line with `needle`: 400,000 matches."""
    root = tmp_path_factory.mktemp("large")
    text = "".join(f"line {line} with a needle in it\n" for line in range(4000))
    for number in range(100):
        (root / f"{number:03}.txt").write_text(text)
    return root


@pytest.fixture(scope="session")
def make_fake(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Compiles `fake.c`, an incompatible library, with the given macro definitions."""
    folder = tmp_path_factory.mktemp("fakes")

    def make(name: str, *definitions: str) -> str:
        library = folder / f"lib{name}.so"
        if not library.exists():
            include = f"-I{ROOT / 'bindings' / 'c' / 'include'}"
            source = Path(__file__).with_name("fake.c")
            flags = ["-std=c99", "-fPIC", "-shared", include, *definitions]
            subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
        return str(library)

    return make
