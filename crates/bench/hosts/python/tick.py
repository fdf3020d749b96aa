"""Reading the fields of a tick that every program reads."""

from collections.abc import Iterable, Iterator
from typing import Protocol


class Fields(Protocol):
    """The fields that all kinds of ticks have."""

    @property
    def number(self) -> int: ...
    @property
    def bid(self) -> int: ...
    @property
    def volume(self) -> int: ...


def touch(ticks: Iterable[Fields]) -> int:
    """Sums the fields of all ticks."""
    return sum([tick.number + tick.bid + tick.volume for tick in ticks])


def one_by_one(ticks: Iterator[Fields]) -> tuple[int, int]:
    """Returns the sum of the fields and the number of ticks."""
    total = records = 0
    for tick in ticks:
        total += tick.number + tick.bid + tick.volume
        records += 1
    return total, records
