# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""The types of thalweg:feed@0.1.0."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """What an event is about."""

    QUOTE = "quote"
    """The book has changed."""
    TRADE = "trade"
    """Something was bought."""
    HALT = "halt"
    """Of the control lane: trading stops at this event's number."""


@dataclass(frozen=True, slots=True)
class Level:
    """One price of the book."""

    price: int
    """In hundredths."""
    size: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event with the book after it: 488 bytes, no text, in place."""

    number: int
    """From 0."""
    at_ns: int
    """Nanoseconds since the market opened."""
    symbol: int
    kind: Kind
    price: int
    """Of the trade, or the best bid, in hundredths."""
    size: int
    bids: list[Level]
    """The best first."""
    asks: list[Level]
