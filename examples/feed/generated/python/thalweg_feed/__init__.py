# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""Market events: three streams of the same records with different overflow policies."""

from .aio import AsyncFeed
from .client import Feed
from .types import Event, Kind, Level
from .views import EventView

__all__ = ["AsyncFeed", "Event", "EventView", "Feed", "Kind", "Level"]
