# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""The types of thalweg:hello@0.1.0."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import thalweg


class Tone(enum.Enum):
    """The tone of a greeting."""

    FRIENDLY = "friendly"
    """Uses the first name."""
    FORMAL = "formal"
    """Uses the full name."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person."""

    name: str
    """The name."""
    age: int | None = None
    """The age in years, if it is known."""


class HelloError(thalweg.ServiceError):
    """Why there is no greeting."""


class HelloErrorNoName(HelloError):
    """The name is empty."""

    payload: None


class HelloErrorTooLong(HelloError):
    """The name is longer than this number of bytes."""

    payload: int
