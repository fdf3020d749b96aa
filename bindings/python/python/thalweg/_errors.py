"""The exceptions for unsuccessful outcomes of calls and streams."""

import re
from typing import Any, ClassVar


class Error(Exception):
    """Base of all exceptions of Thalweg.

    `code` is the number of `enum tw_code` in `thalweg.h`; numbers never change.
    """

    code: int = 0
    retryable: bool

    def __init__(self, message: str = "", *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        """Whether the same call may succeed later."""

    def __str__(self) -> str:
        """The message, or the name of the class in words if there is none."""
        name = type(self).__name__
        return super().__str__() or re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


class ServiceError(Error):
    """The service's own typed error; generated packages derive theirs from it."""

    code = 1
    payload: Any
    """The value that the service sent; `None` if the error has no payload."""

    __match_args__: ClassVar[tuple[str, ...]] = ("payload",)

    def __init__(self, payload: Any = None, *, retryable: bool = False) -> None:
        super().__init__("" if payload is None else str(payload), retryable=retryable)
        self.payload = payload

    def __eq__(self, other: object) -> bool:
        """Errors of one class with equal payloads are equal."""
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.payload == other.payload)

    def __hash__(self) -> int:
        return hash((type(self), str(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), () if self.payload is None else (self.payload,))


class Cancelled(Error):
    """The call was cancelled, or its client or port was closed."""

    code = 2


class TimedOut(Error, TimeoutError):
    """The deadline passed. Also a `TimeoutError`."""

    code = 3


class GuestLost(Error):
    """The service could not be started again, or dropped the call."""

    code = 4


class GuestPanicked(Error):
    """The service panicked in this call; the message is the panic's."""

    code = 5


class Overloaded(Error):
    """A limit was reached, and the call did not begin: try again later."""

    code = 6


class ShutDown(Error):
    """The library's runtime is shutting down."""

    code = 7


class Closed(Error):
    """The client, resource, stream or batch is closed."""

    code = 8


class Stale(Error):
    """The handle's object does not exist any more."""

    code = 9


class BadArgument(Error, ValueError):
    """A value of a wrong kind, or a malformed message. Also a `ValueError`."""

    code = 10


class VersionMismatch(Error):
    """The library and the package are incompatible; the message names both."""

    code = 11


class Forked(Error):
    """The object belongs to the parent process: open the library again after `fork()`."""

    code = 12


class Interrupted(Error, InterruptedError):
    """A wait was interrupted. Calls and streams never raise it: they run Python's signal
    handlers and continue to wait, or raise the exception of a handler."""

    code = 13


class WouldPark(Error):
    """A wait was necessary where waiting is not allowed."""

    code = 14


BY_CODE: tuple[type[Error], ...] = (
    Error,
    ServiceError,
    Cancelled,
    TimedOut,
    GuestLost,
    GuestPanicked,
    Overloaded,
    ShutDown,
    Closed,
    Stale,
    BadArgument,
    VersionMismatch,
    Forked,
    Interrupted,
    WouldPark,
)
"""The class for each code, by its number; codes of a newer library get the base class."""
