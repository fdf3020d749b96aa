"""Typed calls and streams between languages, in one process.

This is the generic package: it opens a service library, and `thalweg gen` writes a
package of pure, typed Python over it for each service. What a user meets of it are the
exceptions, and the streams, batches and views that calls return.
"""

from thalweg._client import AsyncClient, AsyncResource, Client, Resource
from thalweg._errors import (
    BadArgument,
    Cancelled,
    Closed,
    Error,
    Forked,
    GuestLost,
    GuestPanicked,
    Interrupted,
    Overloaded,
    ServiceError,
    ShutDown,
    Stale,
    TimedOut,
    VersionMismatch,
    WouldPark,
)
from thalweg._future import AsyncFuture, Future
from thalweg._library import library_path
from thalweg._log import log_to
from thalweg._native import (
    ABI,
    AsyncStream,
    Batch,
    OwnedFuture,
    OwnedStream,
    Stream,
    StreamStats,
    View,
    __version__,
    counters,
    reload,
    together,
)
from thalweg._native import Resource as OwnedResource
from thalweg._results import Err, NoValue, Ok, Some

__all__ = [
    "ABI",
    "AsyncClient",
    "AsyncFuture",
    "AsyncResource",
    "AsyncStream",
    "BadArgument",
    "Batch",
    "Cancelled",
    "Client",
    "Closed",
    "Err",
    "Error",
    "Forked",
    "Future",
    "GuestLost",
    "GuestPanicked",
    "Interrupted",
    "NoValue",
    "Ok",
    "Overloaded",
    "OwnedFuture",
    "OwnedResource",
    "OwnedStream",
    "Resource",
    "ServiceError",
    "ShutDown",
    "Some",
    "Stale",
    "Stream",
    "StreamStats",
    "TimedOut",
    "VersionMismatch",
    "View",
    "WouldPark",
    "__version__",
    "counters",
    "library_path",
    "log_to",
    "reload",
    "together",
]
