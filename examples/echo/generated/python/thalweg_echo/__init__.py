# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""An echo and a timer: a small service with state, typed errors, calls that take time, and a stream."""

from .aio import AsyncEcho, AsyncTimer
from .client import Echo, Timer
from .types import (
    ComplexRequest,
    ComplexResponse,
    Request,
    Response,
    Tick,
    TimerError,
    TimerErrorNoName,
    TimerErrorTooLong,
    TimerErrorTooShort,
)
from .views import TickView

__all__ = [
    "AsyncEcho",
    "AsyncTimer",
    "ComplexRequest",
    "ComplexResponse",
    "Echo",
    "Request",
    "Response",
    "Tick",
    "TickView",
    "Timer",
    "TimerError",
    "TimerErrorNoName",
    "TimerErrorTooLong",
    "TimerErrorTooShort",
]
