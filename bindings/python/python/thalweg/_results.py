"""Classes for a result inside a value, an option of an option, and a missing value."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Ok(Generic[T_co]):
    """The ok side of a `result` inside a value; `Ok(None)` if it has no payload."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Err(Generic[T_co]):
    """The error side of a `result` inside a value; `Err(None)` if it has no payload."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Some(Generic[T_co]):
    """An option's payload if that can be `None` itself: `Some(None)` is not `None`."""

    value: T_co


@dataclass(frozen=True, slots=True)
class NoValue:
    """For a parameter that is a `future`: the future ends without a value."""
