# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""What thalweg:hello@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import PersonView

PACKAGE = layout.Package("thalweg:hello", "0.1.0", 0xA608C594DECFDF29)

GUESTS = PACKAGE.resource_method(
    "hello.[constructor]guests",
    (
        "record{people:list<record{name:string,age:option<u8>}>}",
        "own<guests>",
        "variant{no-name,too-long(u32)}",
        "",
    ),
    (8, (("people", 0, layout.list_of(_layout.PERSON)),)),
    _layout.HELLO_ERROR,
)

GUESTS_COUNT = PACKAGE.method(
    "hello.[method]guests.count",
    ("record{self:borrow<guests>}", "u32", "", ""),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U32,
)

GUESTS_ARRIVE = PACKAGE.stream_method(
    "hello.[method]guests.arrive",
    (
        "record{self:borrow<guests>}",
        "stream<record{name:string,age:option<u8>}>",
        "",
        "record{name:string,age:option<u8>}",
    ),
    (4, (("self_", 0, layout.BORROW),)),
    _layout.PERSON,
    PersonView,
)

GREET = PACKAGE.method(
    "hello.greet",
    (
        "record{person:record{name:string,age:option<u8>},tone:enum{friendly,formal}}",
        "string",
        "variant{no-name,too-long(u32)}",
        "",
    ),
    (16, (("person", 0, _layout.PERSON), ("tone", 12, _layout.TONE))),
    layout.STRING,
    _layout.HELLO_ERROR,
)

GREET_ALL = PACKAGE.method(
    "hello.greet-all",
    ("record{guests:borrow<guests>}", "list<string>", "", ""),
    (4, (("guests", 0, layout.BORROW),)),
    layout.list_of(layout.STRING),
)

GREETED = PACKAGE.method(
    "hello.greeted",
    ("record{}", "u64", "", ""),
    (0, ()),
    layout.U64,
)
