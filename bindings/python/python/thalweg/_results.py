"""Values that Python has no name for: a result inside a value, an option of an option, no value."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Ok(Generic[T_co]):
    """The good side of a `result` inside a value; `Ok(None)` where it carries nothing."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Err(Generic[T_co]):
    """The other side of a `result` inside a value; `Err(None)` where it carries nothing."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Some(Generic[T_co]):
    """An option's payload where that can be `None` itself: `Some(None)` is not `None`."""

    value: T_co


@dataclass(frozen=True, slots=True)
class NoValue:
    """For a parameter that is a `future`: there is no value, and none comes."""
