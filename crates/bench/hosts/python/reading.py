"""Matches read in place, as objects, and the same loop over a list of objects."""

import time
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter_ns
from typing import Protocol

from thalweg import Batch, Stream
from thalweg_lab import Match, MatchView

BATCH = 256
"""Records in a batch."""

CAPACITY = 8192
"""A stream's worth: its capacity in crates/bench/wit/lab.thalweg.toml."""

FILL_SECONDS = 0.003
"""Untimed seconds for a generator to fill a stream: several times the need."""

Matches = Stream[Match, MatchView]


class Fields(Protocol):
    """What views and objects have in common."""

    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def text(self) -> str: ...


def touch(matches: Iterable[Fields]) -> int:
    """Sums the fields that every host reads. Texts begin and end with ASCII."""
    total = 0
    for match in matches:
        text = match.text
        total += (
            match.line + match.column + len(match.path) + ord(text[0]) + ord(text[-1])
        )
    return total


def views(stream: Matches) -> dict[str, int]:
    """All of a stream, read in place."""
    return read(stream, touch)


def objects(stream: Matches) -> dict[str, int]:
    """Reads a stream, each match copied to an object."""
    return read(stream, lambda batch: touch(batch.objects()))


def read(
    stream: Matches, touch_batch: Callable[[Batch[Match, MatchView]], int]
) -> dict[str, int]:
    """Times acquire, loop and release of batches that are ready after each wait."""
    total = records = spent = 0
    batches = stream.batches(BATCH)
    until_wait = 0
    while True:
        if until_wait <= 0:
            time.sleep(FILL_SECONDS)
            until_wait = CAPACITY
        began = perf_counter_ns()
        batch = next(batches, None)
        if batch is None:
            break
        count = len(batch)
        total += touch_batch(batch)
        batch.release()
        spent += perf_counter_ns() - began
        records += count
        until_wait -= count
    return {"ns": spent, "records": records, "checksum": total}


def array(matches: list[Match]) -> dict[str, int]:
    """The same loop over a list."""
    began = perf_counter_ns()
    total = touch(matches)
    return {"ns": perf_counter_ns() - began, "records": len(matches), "checksum": total}


def verify(matches: Iterator[Match]) -> dict[str, object]:
    """FNV-1a over every byte of every match, in order: see `Contents::digest` in the service."""
    digest, records = 0xCBF29CE484222325, 0
    for match in matches:
        numbers = match.line.to_bytes(8, "little") + match.column.to_bytes(8, "little")
        whole = match.path.encode() + match.text.encode() + numbers + bytes([match.cut])
        for byte in whole:
            digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        records += 1
    return {"records": records, "digest": f"{digest:016x}"}
