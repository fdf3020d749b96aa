# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""Records of thalweg:hello@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import Person


class PersonView(thalweg.View[Person]):
    """A `Person` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    name: thalweg.layout.Field[str] = thalweg.layout.field(0, thalweg.layout.STRING)
    """The name."""
    age: thalweg.layout.Field[int | None] = thalweg.layout.field(
        8,
        thalweg.layout.option(thalweg.layout.U8, 2, 1, 1),
    )
    """The age in years, if it is known."""
