# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""What thalweg:hello@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import PersonView

PACKAGE = layout.Package("thalweg:hello", "0.1.0", 0xA608C594DECFDF29)

GUESTS = PACKAGE.resource_method(
    "hello.[constructor]guests",
    (0xD107AB1F6151219F, 0x534ED845484EE37E, 0x8DE5C3B0E84BCF87, 0),
    (8, (("people", 0, layout.list_of(_layout.PERSON)),)),
    _layout.HELLO_ERROR,
)

GUESTS_COUNT = PACKAGE.method(
    "hello.[method]guests.count",
    (0xD06E3BFDD85F420A, 0x4D2BDF193E8526D1, 0, 0),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U32,
)

GUESTS_ARRIVE = PACKAGE.stream_method(
    "hello.[method]guests.arrive",
    (0xD06E3BFDD85F420A, 0xA0A8A05E1E4069C1, 0, 0x97CF3D8DF59348DB),
    (4, (("self_", 0, layout.BORROW),)),
    _layout.PERSON,
    PersonView,
)

GREET = PACKAGE.method(
    "hello.greet",
    (0x6499A83A6A7627E4, 0x704BE0D8FAAFFC58, 0x8DE5C3B0E84BCF87, 0),
    (16, (("person", 0, _layout.PERSON), ("tone", 12, _layout.TONE))),
    layout.STRING,
    _layout.HELLO_ERROR,
)

GREET_ALL = PACKAGE.method(
    "hello.greet-all",
    (0x1D66150E03449E81, 0xD8E4C1A588E3A824, 0, 0),
    (4, (("guests", 0, layout.BORROW),)),
    layout.list_of(layout.STRING),
)

GREETED = PACKAGE.method(
    "hello.greeted",
    (0x651BCCB0340F0EF8, 0x4D35D3193E8D66F2, 0, 0),
    (0, ()),
    layout.U64,
)
