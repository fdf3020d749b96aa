"""Programs generated from an older or a newer package version than the library's."""

import asyncio
import dataclasses
import importlib
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import thalweg

WIT = Path(__file__).parents[3] / "conformance" / "wit"

# Parts of the WIT that the older version lacks or the newer one extends.
ERRNO = "        errno: s32,\n"
BLOB = "        blob: option<list<u8>>,\n"
BOOL = ", %bool: option<point>) -> tuple<u8"
TELL = "    tell: func(words: list<string>, at: option<u32>) -> u64;\n"
ECHO_BOOL = "    echo-bool: func(value: bool) -> bool;\n"
FAILURE = "        at(tuple<string, point>),\n"
RIGHTS = "        write,\n        %record,\n"

OLDER = [
    (ERRNO, ""),
    (BLOB, ""),
    (BOOL, ") -> tuple<u8"),
    (TELL, "    tell: func(words: list<string>) -> u64;\n"),
    (ECHO_BOOL, ""),
    (RIGHTS, "        write,\n"),
]
NEWER = [
    (ERRNO, ERRNO + "        more: u32,\n"),
    (BLOB, BLOB + "        size: u64,\n        more: string,\n"),
    (BOOL, ", %bool: option<point>, more: string) -> tuple<u8"),
    (TELL, "    extra: func();\n" + TELL.replace(") ->", ", more: string) ->")),
    # The functions have another order.
    (ECHO_BOOL, ""),
    (
        "    /// No parameters and no result.\n",
        ECHO_BOOL + "\n    /// No parameters and no result.\n",
    ),
    (RIGHTS, RIGHTS + "        mine,\n"),
    (FAILURE, FAILURE + "        later(u8),\n"),
]

Generate = Callable[[str, list[tuple[str, str]]], Any]


@pytest.fixture(scope="module")
def generate(
    program: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Generate]:
    """Generates a package from the changed WIT under a separate module name."""
    folder = tmp_path_factory.mktemp("versions")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))

        def made(name: str, changes: list[tuple[str, str]]) -> Any:
            wit = folder / name
            wit.mkdir()
            text = (WIT / "conformance.wit").read_text()
            for old, new in changes:
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            (wit / "conformance.wit").write_text(text)
            shutil.copy(WIT / "conformance.thalweg.toml", wit)
            command = [program, "gen", "--lang", "python"]
            subprocess.run([*command, "--out", str(wit), str(wit)], check=True)
            module = f"thalweg_conformance_{name}"
            (wit / "python" / "thalweg_conformance").rename(folder / module)
            return importlib.import_module(module)

        yield made


@pytest.fixture(scope="module")
def older(generate: Generate) -> Any:
    return generate("older", OLDER)


@pytest.fixture(scope="module")
def newer(generate: Generate) -> Any:
    return generate("newer", NEWER)


class Oracle:
    """A host that implements the imports of every version."""

    def __init__(self) -> None:
        self.tell_calls: list[tuple[object, ...]] = []

    def look_up(self, key: int) -> str:
        return f"number {key}"

    def tell(self, words: Sequence[str], *rest: object) -> int:
        self.tell_calls.append((list(words), *rest))
        return 100 + len(words)

    def nod(self) -> None:
        pass

    def extra(self) -> None:
        raise AssertionError("the library does not import this function")


class AsyncOracle(Oracle):
    async def look_up(self, key: int) -> str:  # type: ignore[override]
        return super().look_up(key)

    async def tell(self, words: Sequence[str], *rest: object) -> int:  # type: ignore[override]
        return super().tell(words, *rest)

    async def nod(self) -> None:  # type: ignore[override]
        pass

    async def extra(self) -> None:  # type: ignore[override]
        super().extra()


def keywords(package: Any, **more: int) -> Any:
    """A `Keywords` record with a text and numbers."""
    zero = {"str": "", "builtins.int": 0, "bool": False, "builtins.int | None": None}
    fields = dataclasses.fields(package.types.Keywords)
    values = {field.name: zero[str(field.type)] for field in fields}
    return package.types.Keywords(**{**values, "class_": "text", "nullptr": -8, **more})


def test_caller_of_older_version_runs_with_newer_code(
    generate: Generate, conformance_library: str
) -> None:
    """Options added at the end of a record or of parameters default to `None`."""
    changes = [
        (BLOB, BLOB + "        more: option<string>,\n        rest: option<u32>,\n"),
        (BOOL, ", %bool: option<point>, more: option<string>) -> tuple<u8"),
    ]
    package = generate("grown", changes)
    with package.Conformance.open(conformance_library) as client:
        fields = [field.name for field in dataclasses.fields(package.types.Item)]
        assert fields[-2:] == ["more", "rest"]
        item = package.types.Item(1, "one", [])
        assert (item.blob, item.more, item.rest) == (None, None, None)
        assert client.several(7, "match", [3, 5]) == (7, "match", [3, 5], None)


def test_older_program_sees_only_known_fields(
    older: Any, conformance_library: str
) -> None:
    oracle = Oracle()
    with older.Conformance.open(conformance_library, host=oracle) as client:
        value = keywords(older)
        assert client.echo_keywords(value) == value
        assert client.several(7, "match", [3, 5]) == (7, "match", [3, 5], None)
        both = older.types.Rights.READ | older.types.Rights.WRITE
        assert client.echo_rights(both) == both
        with pytest.raises(older.types.FailureCode) as failed:
            client.fail(older.types.FailureCode(4711))
        assert failed.value.payload == 4711
        # An inline call whose method has another number in the library.
        with pytest.raises(older.types.FailureCode):
            client.fail_here(older.types.FailureCode(1))
        assert client.tell(["a", "b"], 5) == 102
        assert oracle.tell_calls == [(["a", "b"],)]
        assert not hasattr(client, "echo_bool")


def test_newer_program_sees_zero_for_unknown_fields(
    newer: Any, conformance_library: str
) -> None:
    oracle = Oracle()
    with newer.Conformance.open(conformance_library, host=oracle) as client:
        value = keywords(newer, errno=-5, more=7)
        # The library does not return fields that it does not know.
        assert client.echo_keywords(value) == keywords(newer, errno=-5)
        point = newer.types.Point(1, -3)
        assert client.several(7, "m", [], point, "not known") == (7, "m", [], point)
        rights = newer.types.Rights
        assert client.echo_rights(rights.RECORD | rights.MINE) == rights.RECORD
        with pytest.raises(newer.types.FailureAt) as failed:
            client.fail(newer.types.FailureAt(("here", point)))
        assert failed.value.payload == ("here", point)
        with pytest.raises(newer.types.FailureUnknown):
            client.fail(newer.types.FailureLater(3))
        assert client.tell(["a", "b"], 5) == 102
        assert oracle.tell_calls == [(["a", "b"], 5, "")]
        assert client.echo_bool(True) is True


def known(item: Any) -> tuple[int, str, list[str]]:
    return item.number, item.name, list(item.tags)


def all_known(count: int) -> list[tuple[int, str, list[str]]]:
    tags = [[], ["tag 0"], ["tag 0", "tag 1"]]
    return [(n, f"item {n}", tags[n % 3]) for n in range(count)]


@pytest.mark.parametrize("which", ["older", "newer"])
def test_stream_elements_are_converted_for_program_version(
    which: str, conformance_library: str, request: pytest.FixtureRequest
) -> None:
    package = request.getfixturevalue(which)
    with package.Conformance.open(conformance_library) as client:
        with client.items(1000) as stream:
            items = list(stream)
        assert [(item.number, item.name) for item in items] == [
            (number, name) for number, name, _ in all_known(1000)
        ]
        assert [len(item.tags) for item in items] == [n % 3 for n in range(1000)]
        if which == "newer":
            assert all(item.size == 0 and item.more == "" for item in items)
            assert [item.blob is None for item in items] == [
                n % 2 == 1 for n in range(1000)
            ]
        else:
            assert not hasattr(items[0], "blob")
        with client.items(1000) as stream:
            numbers: list[int] = []
            for batch in stream.batches(64):
                with batch:
                    views = [view.number for view in batch]
                    column = numpy.asarray(batch.column("number")).tolist()
                    assert views == column
                    numbers += views
        assert numbers == list(range(1000))


@pytest.mark.parametrize("which", ["older", "newer"])
def test_sent_elements_are_converted_for_library_version(
    which: str, conformance_library: str, request: pytest.FixtureRequest
) -> None:
    package = request.getfixturevalue(which)
    more: tuple[object, ...] = (None, 7, "not known") if which == "newer" else ()
    items = (package.types.Item(n, f"<{n}>", ["a"] * n, *more) for n in range(300))
    with package.Conformance.open(conformance_library) as client:
        assert client.names_of(items) == "".join(f"<{n}>" for n in range(300))


@pytest.mark.parametrize("which", ["older", "newer"])
def test_other_version_works_on_event_loop(
    which: str, conformance_library: str, request: pytest.FixtureRequest
) -> None:
    package = request.getfixturevalue(which)
    oracle = AsyncOracle()

    async def runs() -> None:
        async with package.AsyncConformance.open(
            conformance_library, host=oracle
        ) as client:
            value = keywords(package)
            with thalweg.together():
                calls = [client.echo_keywords(value) for _ in range(70)]
                results = await asyncio.gather(*calls)
            assert results == [value] * 70
            async with await client.items(1000) as stream:
                numbers = [item.number async for item in stream]
            assert numbers == list(range(1000))
            assert await client.tell(["a"], None) == 101
            assert oracle.tell_calls == [
                (["a"], None, "") if which == "newer" else (["a"],)
            ]

    asyncio.run(runs())


@pytest.mark.parametrize("which", ["older", "newer"])
def test_cbor_uses_types_of_program(
    which: str, conformance_library: str, request: pytest.FixtureRequest
) -> None:
    package = request.getfixturevalue(which)
    methods = importlib.import_module(f"{package.__name__}._methods")
    with package.Conformance.open(conformance_library) as client:
        value = keywords(package)
        data = methods.ECHO_KEYWORDS.to_cbor(client, "result", value)
        assert methods.ECHO_KEYWORDS.from_cbor(client, "result", data) == value
        assert (b"more" in data) == (which == "newer")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("        await: s32,\n", "        %more: u8,\n        await: s32,\n"),
            "conformance.echo-keywords differ: `value.more` is `value.await`",
        ),
        (
            (ECHO_BOOL, ECHO_BOOL + "    not-there: func();\n"),
            "the library has no conformance.not-there",
        ),
        (
            ("    nod: func();\n", ""),
            "the service imports oracle.nod, which the host does not provide",
        ),
        (
            (
                "-> result<u64, failure>;\n\n    /// The same as an",
                "-> u64;\n\n    /// The same as an",
            ),
            "the error of conformance.fail differ",
        ),
    ],
)
def test_incompatible_version_error_names_both(
    generate: Generate,
    conformance_library: str,
    change: tuple[str, str],
    said: str,
    request: pytest.FixtureRequest,
) -> None:
    name = f"other{request.node.callspec.indices['change']}"
    package = generate(name, [change])
    with pytest.raises(thalweg.VersionMismatch) as refused:
        package.Conformance.open(conformance_library)
    text = str(refused.value)
    assert said in text
    assert "the library is thalweg:conformance 0.1.0 (layout " in text
    assert "this package was generated for thalweg:conformance 0.1.0 (layout " in text


def test_clients_of_three_versions_coexist(
    older: Any, newer: Any, service: Any, conformance_library: str
) -> None:
    with (
        older.Conformance.open(conformance_library) as first,
        newer.Conformance.open(conformance_library) as second,
    ):
        assert first.echo_keywords(keywords(older)) == keywords(older)
        assert second.echo_keywords(keywords(newer)) == keywords(newer)
        assert service.echo_bool(True) is True
        # A method of one package is refused by a client of another.
        with pytest.raises(thalweg.BadArgument):
            importlib.import_module(f"{older.__name__}._methods").NOTHING.call(
                second, None
            )
