# Written by `thalweg gen` from thalweg:recipes@0.1.0. Do not edit.
"""Records of thalweg:recipes@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import Progress, Setting


class ProgressView(thalweg.View[Progress]):
    """A `Progress` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    done: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U32)
    """Finished steps."""
    total: thalweg.layout.Field[int] = thalweg.layout.field(4, thalweg.layout.U32)
    """All steps."""


class SettingView(thalweg.View[Setting]):
    """A `Setting` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    name: thalweg.layout.Field[str] = thalweg.layout.field(0, thalweg.layout.STRING)
    value: thalweg.layout.Field[str] = thalweg.layout.field(8, thalweg.layout.STRING)
