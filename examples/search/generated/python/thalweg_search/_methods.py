# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""What thalweg:search@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import MatchView, ProgressView

PACKAGE = layout.Package("thalweg:search", "0.1.0", 0x7BA19FC7A9AF206C)

QUERY = PACKAGE.resource_method(
    "search.[constructor]query",
    (
        "record{pattern:string,dir:string,options:record{fixed:bool,ignore-case:bool,hidden:bool,ignore-files:bool,globs:list<string>}}",
        "own<query>",
        "variant{pattern(string),glob(string),directory(string)}",
        "",
    ),
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
    (
        "record{self:borrow<query>}",
        "stream<record{files:u64,bytes:u64,matches:u64,unreadable:u64,problem:option<string>}>",
        "",
        "record{files:u64,bytes:u64,matches:u64,unreadable:u64,problem:option<string>}",
    ),
    (4, (("self_", 0, layout.BORROW),)),
    _layout.PROGRESS,
    ProgressView,
)

COUNT = PACKAGE.method(
    "search.count",
    (
        "record{pattern:string,dir:string}",
        "u64",
        "variant{pattern(string),glob(string),directory(string)}",
        "",
    ),
    (16, (("pattern", 0, layout.STRING), ("dir", 8, layout.STRING))),
    layout.U64,
    _layout.SEARCH_ERROR,
)

MATCHES = PACKAGE.stream_method(
    "search.matches",
    (
        "record{query:borrow<query>}",
        "stream<record{path:string,line:u64,column:u64,text:string,path-bytes:option<list<u8>>,text-bytes:option<list<u8>>,cut:bool}>",
        "variant{pattern(string),glob(string),directory(string)}",
        "record{path:string,line:u64,column:u64,text:string,path-bytes:option<list<u8>>,text-bytes:option<list<u8>>,cut:bool}",
    ),
    (4, (("query", 0, layout.BORROW),)),
    _layout.MATCH,
    MatchView,
    _layout.SEARCH_ERROR,
)

ESCAPE = PACKAGE.method(
    "search.escape",
    ("record{text:string}", "string", "", ""),
    (8, (("text", 0, layout.STRING),)),
    layout.STRING,
)
