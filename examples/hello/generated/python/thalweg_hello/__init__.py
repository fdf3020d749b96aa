# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""Greets people, and counts the greetings."""

from .aio import AsyncGuests, AsyncHello
from .client import Guests, Hello
from .types import HelloError, HelloErrorNoName, HelloErrorTooLong, Person, Tone
from .views import PersonView

__all__ = [
    "AsyncGuests",
    "AsyncHello",
    "Guests",
    "Hello",
    "HelloError",
    "HelloErrorNoName",
    "HelloErrorTooLong",
    "Person",
    "PersonView",
    "Tone",
]
