# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""How the types of thalweg:conformance@0.1.0 lie in messages."""

from thalweg import layout

from .types import (
    Color,
    Days,
    Failure,
    FailureAt,
    FailureCode,
    FailureUnknown,
    Feed,
    Fixed,
    Item,
    Keywords,
    MaybeCounter,
    MaybeCounterNo,
    MaybeCounterOne,
    MaybeCounterSeveral,
    Nested,
    Pair,
    Point,
    Rights,
    Sample,
    Scalars,
    Shape,
    ShapeCircle,
    ShapeLabel,
    ShapeLine,
    ShapeNothing,
    ShapePolygon,
    ShapeStatic,
    Wide,
)

POINT = layout.record(Point, 8, 4, ("x", 0, layout.S32), ("y", 4, layout.S32))
SCALARS = layout.record(
    Scalars,
    64,
    8,
    ("a_bool", 0, layout.BOOL),
    ("a_u64", 8, layout.U64),
    ("a_u8", 16, layout.U8),
    ("a_u16", 18, layout.U16),
    ("a_s8", 20, layout.S8),
    ("a_u32", 24, layout.U32),
    ("a_s16", 28, layout.S16),
    ("a_f64", 32, layout.F64),
    ("a_char", 40, layout.CHAR),
    ("a_s64", 48, layout.S64),
    ("a_f32", 56, layout.F32),
    ("a_s32", 60, layout.S32),
)
KEYWORDS = layout.record(
    Keywords,
    112,
    8,
    ("type_", 0, layout.U8),
    ("match_", 4, layout.STRING),
    ("async_", 12, layout.BOOL),
    ("self", 13, layout.U8),
    ("crate", 14, layout.U16),
    ("super", 16, layout.U32),
    ("fn", 24, layout.U64),
    ("class_", 32, layout.STRING),
    ("def_", 40, layout.STRING),
    ("lambda_", 48, layout.STRING),
    ("none", 56, layout.option(layout.U8, 2, 1, 1)),
    ("return_", 60, layout.S32),
    ("struct", 64, layout.S32),
    ("int", 68, layout.S32),
    ("default", 72, layout.S32),
    ("register", 76, layout.S32),
    ("static", 80, layout.S32),
    ("import_", 84, layout.S32),
    ("from_", 88, layout.S32),
    ("yield_", 92, layout.S32),
    ("await_", 96, layout.S32),
    ("nullptr", 100, layout.S32),
    ("errno", 104, layout.S32),
)
SHAPE: layout.Kind[Shape] = layout.variant(
    24,
    8,
    1,
    8,
    (ShapeCircle, layout.F64),
    (ShapeLine, layout.tuple_of(16, 4, (0, POINT), (8, POINT))),
    (ShapeLabel, layout.STRING),
    (ShapePolygon, layout.list_of(POINT)),
    (ShapeNothing, None),
    (ShapeStatic, layout.U8),
)
COLOR = layout.enumeration(Color, 1)
RIGHTS = layout.flags(Rights, 1)
DAYS = layout.flags(Days, 2)
WIDE = layout.flags(Wide, 4)
NESTED = layout.record(
    Nested,
    92,
    4,
    ("text", 0, layout.STRING),
    ("bytes", 8, layout.BYTES),
    ("names", 16, layout.list_of(layout.STRING)),
    ("grid", 24, layout.list_of(layout.list_of(layout.S32))),
    ("maybe", 32, layout.option(layout.STRING, 12, 4, 4)),
    ("twice", 44, layout.nested_option(layout.option(layout.U32, 8, 4, 4), 12, 4, 4)),
    ("outcomes", 56, layout.list_of(layout.result(POINT, layout.STRING, 12, 4, 4))),
    (
        "pairs",
        64,
        layout.list_of(
            layout.tuple_of(
                20,
                4,
                (0, layout.STRING),
                (8, layout.option(layout.BYTES, 12, 4, 4)),
            ),
        ),
    ),
    ("shapes", 72, layout.list_of(SHAPE)),
    ("color", 80, COLOR),
    ("rights", 81, RIGHTS),
    ("aliased", 84, layout.list_of(layout.STRING)),
)
FAILURE: layout.Kind[Failure] = layout.variant(
    20,
    4,
    1,
    4,
    (FailureUnknown, None),
    (FailureCode, layout.U32),
    (FailureAt, layout.tuple_of(16, 4, (0, layout.STRING), (8, POINT))),
)
ITEM = layout.record(
    Item,
    40,
    8,
    ("number", 0, layout.U64),
    ("name", 8, layout.STRING),
    ("tags", 16, layout.list_of(layout.STRING)),
    ("blob", 24, layout.option(layout.BYTES, 12, 4, 4)),
)
FIXED = layout.record(
    Fixed,
    104,
    8,
    ("flag", 0, layout.BOOL),
    ("key", 1, layout.bytes_of(5)),
    ("place", 8, layout.array_of(layout.F64, 3)),
    ("names", 32, layout.array_of(layout.STRING, 2)),
    ("grid", 48, layout.array_of(layout.array_of(layout.U16, 2), 2)),
    ("colors", 56, layout.array_of(COLOR, 2)),
    (
        "maybe",
        60,
        layout.option(
            layout.array_of(layout.option(layout.STRING, 12, 4, 4), 2),
            28,
            4,
            4,
        ),
    ),
    ("corners", 88, layout.array_of(POINT, 2)),
)
SAMPLE = layout.record(
    Sample,
    144,
    8,
    ("number", 0, layout.U32),
    ("at", 4, POINT),
    ("all", 16, SCALARS),
    ("weight", 80, layout.option(layout.F64, 16, 8, 8)),
    ("color", 96, COLOR),
    ("days", 98, DAYS),
    ("pair", 104, layout.tuple_of(16, 8, (0, layout.U8), (8, layout.U64))),
    ("name", 120, layout.option(layout.STRING, 12, 4, 4)),
    ("corners", 132, layout.list_of(POINT)),
)
PAIR = layout.record(
    Pair,
    20,
    4,
    ("name", 0, layout.STRING),
    ("left", 8, layout.OWN),
    ("right", 12, layout.option(layout.OWN, 8, 4, 4)),
)
MAYBE_COUNTER: layout.Kind[MaybeCounter] = layout.variant(
    12,
    4,
    1,
    4,
    (MaybeCounterOne, layout.OWN),
    (MaybeCounterSeveral, layout.list_of(layout.OWN)),
    (MaybeCounterNo, None),
)
FEED = layout.record(
    Feed,
    20,
    4,
    ("name", 0, layout.STRING),
    ("numbers", 8, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),
    (
        "last",
        12,
        layout.option(layout.future_of(layout.STRING, 0x704BE0D8FAAFFC58), 8, 4, 4),
    ),
)
