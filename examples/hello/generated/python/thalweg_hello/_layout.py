# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""How the types of thalweg:hello@0.1.0 lie in messages."""

from thalweg import layout

from .types import HelloError, HelloErrorNoName, HelloErrorTooLong, Person, Tone

TONE = layout.enumeration(Tone, 1)
PERSON = layout.record(
    Person,
    12,
    4,
    ("name", 0, layout.STRING),
    ("age", 8, layout.option(layout.U8, 2, 1, 1)),
)
HELLO_ERROR: layout.Kind[HelloError] = layout.variant(
    8,
    4,
    1,
    4,
    (HelloErrorNoName, None),
    (HelloErrorTooLong, layout.U32),
)
