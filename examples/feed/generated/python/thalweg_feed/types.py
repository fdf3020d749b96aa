# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""The types of thalweg:feed@0.1.0."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """The kind of an event."""

    QUOTE = "quote"
    """The order book changed."""
    TRADE = "trade"
    """A trade."""
    HALT = "halt"
    """On the control lane: trading halts at this event."""


@dataclass(frozen=True, slots=True)
class Level:
    """One price level of the order book."""

    price: int
    """Price in hundredths."""
    size: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event, with the order book after it. It has 488 bytes and no text, so it is read in place."""

    number: int
    """Number of the event, counted from 0."""
    at_ns: int
    """Nanoseconds since the market opened."""
    symbol: int
    kind: Kind
    price: int
    """Price of the trade, or the best bid, in hundredths."""
    size: int
    bids: list[Level]
    """Bids, best first."""
    asks: list[Level]
