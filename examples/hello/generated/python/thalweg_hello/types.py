# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""The types of thalweg:hello@0.1.0."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import thalweg


class Tone(enum.Enum):
    """How somebody is greeted."""

    FRIENDLY = "friendly"
    """With the first name."""
    FORMAL = "formal"
    """With more than that."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody."""

    name: str
    """What they are called."""
    age: int | None = None
    """Years, where they are known."""


class HelloError(thalweg.ServiceError):
    """Why nobody was greeted."""


class HelloErrorNoName(HelloError):
    """The name is empty."""

    payload: None


class HelloErrorTooLong(HelloError):
    """Longer than that many bytes."""

    payload: int
