# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""What thalweg:echo@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import TickView

PACKAGE = layout.Package("thalweg:echo", "0.1.0", 0x85B23D4EFD1E2C0A)

TIMER = PACKAGE.resource_method(
    "echo.[constructor]timer",
    (0xFA31DFC4D160BD48, 0x5A1C164E7B57A908, 0x8B48CB051347F86C, 0),
    (8, (("name", 0, layout.STRING),)),
    _layout.TIMER_ERROR,
)

TIMER_ECHO = PACKAGE.method(
    "echo.[method]timer.echo",
    (0x149C38DB7EC9C630, 0x888B9577F47F0650, 0x8B48CB051347F86C, 0),
    (16, (("self_", 0, layout.BORROW), ("request", 4, _layout.REQUEST))),
    _layout.RESPONSE,
    _layout.TIMER_ERROR,
)

TIMER_COMPLEX = PACKAGE.method(
    "echo.[method]timer.complex",
    (0x5B6CB073F292C545, 0x7BA19D6C2ACA7502, 0, 0),
    (56, (("self_", 0, layout.BORROW), ("request", 8, _layout.COMPLEX_REQUEST))),
    _layout.COMPLEX_RESPONSE,
)

TIMER_SCHEDULE = PACKAGE.stream_method(
    "echo.[method]timer.schedule",
    (0x161EB98FD3B66130, 0x8679EFCC66983AA2, 0x8B48CB051347F86C, 0xBA691612FA35926E),
    (
        12,
        (
            ("self_", 0, layout.BORROW),
            ("every_ms", 4, layout.U32),
            ("times", 8, layout.U32),
        ),
    ),
    _layout.TICK,
    TickView,
    _layout.TIMER_ERROR,
)

VERSION = PACKAGE.method(
    "echo.version",
    (0x651BCCB0340F0EF8, 0x704BE0D8FAAFFC58, 0, 0),
    (0, ()),
    layout.STRING,
)
