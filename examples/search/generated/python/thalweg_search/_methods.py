# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""What thalweg:search@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import MatchView, ProgressView

PACKAGE = layout.Package("thalweg:search", "0.1.0", 0x7BA19FC7A9AF206C)

QUERY = PACKAGE.resource_method(
    "search.[constructor]query",
    (0xD9320E1C1720221B, 0x4F46E92B541AFA23, 0x4730CC449F54E61B, 0),
    (
        28,
        (
            ("pattern", 0, layout.STRING),
            ("dir", 8, layout.STRING),
            ("options", 16, _layout.OPTIONS),
        ),
    ),
    _layout.SEARCH_ERROR,
)

QUERY_PROGRESS = PACKAGE.stream_method(
    "search.[method]query.progress",
    (0x46895776341CB327, 0xA8E3FFE3FF16D31F, 0, 0x45E3DAAFD09CA3D9),
    (4, (("self_", 0, layout.BORROW),)),
    _layout.PROGRESS,
    ProgressView,
)

COUNT = PACKAGE.method(
    "search.count",
    (0x54EB4CB657B25C15, 0x4D35D3193E8D66F2, 0x4730CC449F54E61B, 0),
    (16, (("pattern", 0, layout.STRING), ("dir", 8, layout.STRING))),
    layout.U64,
    _layout.SEARCH_ERROR,
)

MATCHES = PACKAGE.stream_method(
    "search.matches",
    (0xBC7755FE385DDC7B, 0x439252368C6F876C, 0x4730CC449F54E61B, 0xC2BC292635916F6C),
    (4, (("query", 0, layout.BORROW),)),
    _layout.MATCH,
    MatchView,
    _layout.SEARCH_ERROR,
)

ESCAPE = PACKAGE.method(
    "search.escape",
    (0x2DC9279D6CE0EEC0, 0x704BE0D8FAAFFC58, 0, 0),
    (8, (("text", 0, layout.STRING),)),
    layout.STRING,
)
