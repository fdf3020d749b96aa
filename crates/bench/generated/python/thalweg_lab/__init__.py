# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""What the lab measures: calls that do nothing, and a stream that costs nothing to produce."""

from .aio import AsyncLab
from .client import Lab
from .types import BytesPayload, ComplexRequest, EchoRequest, EchoResponse, Event, Match
from .views import EventView, MatchView

__all__ = [
    "AsyncLab",
    "BytesPayload",
    "ComplexRequest",
    "EchoRequest",
    "EchoResponse",
    "Event",
    "EventView",
    "Lab",
    "Match",
    "MatchView",
]
