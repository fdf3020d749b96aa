"""What every program touches of a tick, whoever brings it."""

from collections.abc import Iterable, Iterator
from typing import Protocol


class Fields(Protocol):
    """What all kinds of ticks have in common."""

    @property
    def number(self) -> int: ...
    @property
    def bid(self) -> int: ...
    @property
    def volume(self) -> int: ...


def touch(ticks: Iterable[Fields]) -> int:
    """All that is there."""
    return sum([tick.number + tick.bid + tick.volume for tick in ticks])


def one_by_one(ticks: Iterator[Fields]) -> tuple[int, int]:
    """What they sum up to, and how many."""
    total = records = 0
    for tick in ticks:
        total += tick.number + tick.bid + tick.volume
        records += 1
    return total, records
