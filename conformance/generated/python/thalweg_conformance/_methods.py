# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""What thalweg:conformance@0.1.0 can be asked."""

import thalweg
from thalweg import layout

from . import _layout
from .types import FeedException, Point
from .views import ItemView, SampleView

PACKAGE = layout.Package(
    "thalweg:conformance",
    "0.1.0",
    0xF850D44D198948E1,
    0xE8FF089C15F19119,
)

ECHO_BOOL = PACKAGE.method(
    "conformance.echo-bool",
    (0xC405D889A963F747, 0xCD2FD49BC6B014BD, 0, 0),
    (1, (("value", 0, layout.BOOL),)),
    layout.BOOL,
)

ECHO_U8 = PACKAGE.method(
    "conformance.echo-u8",
    (0x1F7C484CD7FABFD8, 0x08C48207B56753D8, 0, 0),
    (1, (("value", 0, layout.U8),)),
    layout.U8,
)

ECHO_U16 = PACKAGE.method(
    "conformance.echo-u16",
    (0xB78D9E932168FCDB, 0x4D24D3193E7EF3BF, 0, 0),
    (2, (("value", 0, layout.U16),)),
    layout.U16,
)

ECHO_U32 = PACKAGE.method(
    "conformance.echo-u32",
    (0xA561509316E0793D, 0x4D2BDF193E8526D1, 0, 0),
    (4, (("value", 0, layout.U32),)),
    layout.U32,
)

ECHO_U64 = PACKAGE.method(
    "conformance.echo-u64",
    (0x8C44D19308E674E0, 0x4D35D3193E8D66F2, 0, 0),
    (8, (("value", 0, layout.U64),)),
    layout.U64,
)

ECHO_S8 = PACKAGE.method(
    "conformance.echo-s8",
    (0x0D4FFA4CCD723C3A, 0x08D90607B578DD2E, 0, 0),
    (1, (("value", 0, layout.S8),)),
    layout.S8,
)

ECHO_S16 = PACKAGE.method(
    "conformance.echo-s16",
    (0x4DB3B6813B6586C5, 0x818AD9195C4BFACD, 0, 0),
    (2, (("value", 0, layout.S16),)),
    layout.S16,
)

ECHO_S32 = PACKAGE.method(
    "conformance.echo-s32",
    (0x5E1204814465AE2B, 0x8183C5195C45BA23, 0, 0),
    (4, (("value", 0, layout.S32),)),
    layout.S32,
)

ECHO_S64 = PACKAGE.method(
    "conformance.echo-s64",
    (0x895AD5815CE83CF2, 0x818DD5195C4E29D8, 0, 0),
    (8, (("value", 0, layout.S64),)),
    layout.S64,
)

ECHO_F32 = PACKAGE.method(
    "conformance.echo-f32",
    (0x42A078157737622A, 0xDD635018FF703544, 0, 0),
    (4, (("value", 0, layout.F32),)),
    layout.F32,
)

ECHO_F64 = PACKAGE.method(
    "conformance.echo-f64",
    (0x5C29EF15858E2ACF, 0xDD744C18FF7EA1AB, 0, 0),
    (8, (("value", 0, layout.F64),)),
    layout.F64,
)

ECHO_CHAR = PACKAGE.method(
    "conformance.echo-char",
    (0x7C2CDB457768C773, 0xF2A393910B5B3EBD, 0, 0),
    (4, (("value", 0, layout.CHAR),)),
    layout.CHAR,
)

ECHO_STRING = PACKAGE.method(
    "conformance.echo-string",
    (0xE6E46AC70F2C6DDC, 0x704BE0D8FAAFFC58, 0, 0),
    (8, (("value", 0, layout.STRING),)),
    layout.STRING,
)

ECHO_BYTES = PACKAGE.method(
    "conformance.echo-bytes",
    (0x1C1E1C5CF8784438, 0x596B992F7633BB7C, 0, 0),
    (8, (("value", 0, layout.BYTES),)),
    layout.BYTES,
)

ECHO_BOOLS = PACKAGE.method(
    "conformance.echo-bools",
    (0x5332582549BC64E9, 0x0EC3AA44C270B197, 0, 0),
    (8, (("value", 0, layout.list_of(layout.BOOL)),)),
    layout.list_of(layout.BOOL),
)

ECHO_NUMBERS = PACKAGE.method(
    "conformance.echo-numbers",
    (0x6A43990A5420EB4A, 0xE4225FB51AEC6740, 0, 0),
    (8, (("value", 0, layout.list_of(layout.S64)),)),
    layout.list_of(layout.S64),
)

ECHO_FLOATS = PACKAGE.method(
    "conformance.echo-floats",
    (0xB504AEC8FBA510D9, 0x272DA316C88F92BD, 0, 0),
    (8, (("value", 0, layout.list_of(layout.F64)),)),
    layout.list_of(layout.F64),
)

ECHO_STRINGS = PACKAGE.method(
    "conformance.echo-strings",
    (0x7B3A0305A6EC44CC, 0xD8E4C1A588E3A824, 0, 0),
    (8, (("value", 0, layout.list_of(layout.STRING)),)),
    layout.list_of(layout.STRING),
)

ECHO_GRID = PACKAGE.method(
    "conformance.echo-grid",
    (0xBDDB2C148EBCE2FF, 0x14A572C5502DA3A7, 0, 0),
    (8, (("value", 0, layout.list_of(layout.list_of(layout.S32))),)),
    layout.list_of(layout.list_of(layout.S32)),
)

ECHO_POINTS = PACKAGE.method(
    "conformance.echo-points",
    (0xA9B8EAA53B783B51, 0xB763BC2A92A1D245, 0, 0),
    (8, (("value", 0, layout.list_of(_layout.POINT)),)),
    layout.list_of(_layout.POINT),
)

ECHO_OPTION = PACKAGE.method(
    "conformance.echo-option",
    (0xF876BF71D38A28B3, 0x4328605C80A6E68D, 0, 0),
    (12, (("value", 0, layout.option(layout.STRING, 12, 4, 4)),)),
    layout.option(layout.STRING, 12, 4, 4),
)

ECHO_OPTION_TWICE = PACKAGE.method(
    "conformance.echo-option-twice",
    (0x71D681C0CDB61363, 0xDD4C2AB2E5BB573F, 0, 0),
    (
        12,
        (
            (
                "value",
                0,
                layout.nested_option(layout.option(layout.U32, 8, 4, 4), 12, 4, 4),
            ),
        ),
    ),
    layout.nested_option(layout.option(layout.U32, 8, 4, 4), 12, 4, 4),
)

ECHO_RESULT: layout.Method[
    tuple[thalweg.Ok[int] | thalweg.Err[str]],
    tuple[thalweg.Ok[int] | thalweg.Err[str]],
] = PACKAGE.method(
    "conformance.echo-result",
    (0x9E3F49CA41C6B176, 0x44FF782EB4832964, 0, 0),
    (
        16,
        (
            (
                "value",
                0,
                layout.tuple_of(
                    16,
                    8,
                    (0, layout.result(layout.U64, layout.STRING, 16, 8, 8)),
                ),
            ),
        ),
    ),
    layout.tuple_of(16, 8, (0, layout.result(layout.U64, layout.STRING, 16, 8, 8))),
)

ECHO_RESULT_OK = PACKAGE.method(
    "conformance.echo-result-ok",
    (0x8E4323B9E4BE1795, 0x9FF67FCEBEDC02BD, 0, 0),
    (8, (("value", 0, layout.list_of(layout.result(layout.U32, None, 8, 4, 4))),)),
    layout.list_of(layout.result(layout.U32, None, 8, 4, 4)),
)

ECHO_RESULT_ERROR = PACKAGE.method(
    "conformance.echo-result-error",
    (0x12F6194104737FE4, 0x2B353B5C77E22694, 0, 0),
    (8, (("value", 0, layout.list_of(layout.result(None, layout.STRING, 12, 4, 4))),)),
    layout.list_of(layout.result(None, layout.STRING, 12, 4, 4)),
)

ECHO_RESULT_BARE = PACKAGE.method(
    "conformance.echo-result-bare",
    (0x29ED1BF87498B858, 0x712939E70A1BC65A, 0, 0),
    (8, (("value", 0, layout.list_of(layout.result(None, None, 1, 1, 1))),)),
    layout.list_of(layout.result(None, None, 1, 1, 1)),
)

ECHO_TUPLE: layout.Method[
    tuple[int, str, float, str | None],
    tuple[int, str, float, str | None],
] = PACKAGE.method(
    "conformance.echo-tuple",
    (0x64D23CDED22AE4BE, 0xF7582719E70D31C0, 0, 0),
    (
        32,
        (
            (
                "value",
                0,
                layout.tuple_of(
                    32,
                    8,
                    (0, layout.U8),
                    (4, layout.STRING),
                    (16, layout.F64),
                    (24, layout.option(layout.CHAR, 8, 4, 4)),
                ),
            ),
        ),
    ),
    layout.tuple_of(
        32,
        8,
        (0, layout.U8),
        (4, layout.STRING),
        (16, layout.F64),
        (24, layout.option(layout.CHAR, 8, 4, 4)),
    ),
)

ECHO_POINT = PACKAGE.method(
    "conformance.echo-point",
    (0x87AADEE5C3AEF3D7, 0x88909CE00E869DBF, 0, 0),
    (8, (("value", 0, _layout.POINT),)),
    _layout.POINT,
)

ECHO_SPOT = PACKAGE.method(
    "conformance.echo-spot",
    (0x87AADEE5C3AEF3D7, 0x88909CE00E869DBF, 0, 0),
    (8, (("value", 0, _layout.POINT),)),
    _layout.POINT,
)

ECHO_SCALARS = PACKAGE.method(
    "conformance.echo-scalars",
    (0x4DCC1078089420F8, 0x868C726F3615578A, 0, 0),
    (64, (("value", 0, _layout.SCALARS),)),
    _layout.SCALARS,
)

ECHO_NESTED = PACKAGE.method(
    "conformance.echo-nested",
    (0x2464691F97865A83, 0x1C38865C5328821F, 0, 0),
    (92, (("value", 0, _layout.NESTED),)),
    _layout.NESTED,
)

ECHO_KEYWORDS = PACKAGE.method(
    "conformance.echo-keywords",
    (0x00AF934E5A255597, 0x87CE71FFEF1DC439, 0, 0),
    (112, (("value", 0, _layout.KEYWORDS),)),
    _layout.KEYWORDS,
)

ECHO_SHAPE = PACKAGE.method(
    "conformance.echo-shape",
    (0x27DCC517325249C6, 0x418E0A15219AA3EC, 0, 0),
    (24, (("value", 0, _layout.SHAPE),)),
    _layout.SHAPE,
)

ECHO_SHAPES = PACKAGE.method(
    "conformance.echo-shapes",
    (0x226C562CDDD8241E, 0xEF563916DCA5FFC8, 0, 0),
    (8, (("value", 0, layout.list_of(_layout.SHAPE)),)),
    layout.list_of(_layout.SHAPE),
)

ECHO_COLOR = PACKAGE.method(
    "conformance.echo-color",
    (0xE946BE3B6A423FF8, 0x63256C9D4438AC9C, 0, 0),
    (1, (("value", 0, _layout.COLOR),)),
    _layout.COLOR,
)

ECHO_COLORS = PACKAGE.method(
    "conformance.echo-colors",
    (0x0AB0468B093236E0, 0xFF01521D000F1244, 0, 0),
    (8, (("value", 0, layout.list_of(_layout.COLOR)),)),
    layout.list_of(_layout.COLOR),
)

ECHO_RIGHTS = PACKAGE.method(
    "conformance.echo-rights",
    (0xFFF7E2FE1819BC16, 0x200BB43AD05D749A, 0, 0),
    (1, (("value", 0, _layout.RIGHTS),)),
    _layout.RIGHTS,
)

ECHO_DAYS = PACKAGE.method(
    "conformance.echo-days",
    (0x632C27E16B4B8B28, 0x5426B5E0EF1D8B8E, 0, 0),
    (2, (("value", 0, _layout.DAYS),)),
    _layout.DAYS,
)

ECHO_WIDE = PACKAGE.method(
    "conformance.echo-wide",
    (0x3D4BBABDBD629D86, 0xC30285168087FA3A, 0, 0),
    (4, (("value", 0, _layout.WIDE),)),
    _layout.WIDE,
)

ECHO_NAMES = PACKAGE.method(
    "conformance.echo-names",
    (0x7B3A0305A6EC44CC, 0xD8E4C1A588E3A824, 0, 0),
    (8, (("value", 0, layout.list_of(layout.STRING)),)),
    layout.list_of(layout.STRING),
)

ECHO_FAILURE = PACKAGE.method(
    "conformance.echo-failure",
    (0x6AE055D8C81B47E9, 0x60ECA79926502947, 0, 0),
    (20, (("value", 0, _layout.FAILURE),)),
    _layout.FAILURE,
)

SEVERAL: layout.Method[
    tuple[int, str, list[int], Point | None],
    tuple[int, str, list[int], Point | None],
] = PACKAGE.method(
    "conformance.several",
    (0xE0C387DA4CCC5FF2, 0xF003D89C9BD87F12, 0, 0),
    (
        32,
        (
            ("type_", 0, layout.U8),
            ("match_", 4, layout.STRING),
            ("list", 12, layout.list_of(layout.U16)),
            ("bool", 20, layout.option(_layout.POINT, 12, 4, 4)),
        ),
    ),
    layout.tuple_of(
        32,
        4,
        (0, layout.U8),
        (4, layout.STRING),
        (12, layout.list_of(layout.U16)),
        (20, layout.option(_layout.POINT, 12, 4, 4)),
    ),
)

NOTHING = PACKAGE.method(
    "conformance.nothing",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)

COUNT = PACKAGE.stream_method(
    "conformance.count",
    (0x40C6E31B6CDFA6E5, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (16, (("first", 0, layout.U64), ("count", 8, layout.U64))),
    layout.U64,
    None,
)

ITEMS = PACKAGE.stream_method(
    "conformance.items",
    (0x3BC93270EA6E6686, 0x172EB4133195D4AB, 0x60ECA79926502947, 0x1FD3A7E2BF56062D),
    (8, (("count", 0, layout.U64),)),
    _layout.ITEM,
    ItemView,
    _layout.FAILURE,
)

LATEST = PACKAGE.stream_method(
    "conformance.latest",
    (0x3BC93270EA6E6686, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

BREAKS = PACKAGE.stream_method(
    "conformance.breaks",
    (0xCE6F259B2C11F421, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (8, (("after", 0, layout.U64),)),
    layout.U64,
    None,
)

ENDLESS = PACKAGE.stream_method(
    "conformance.endless",
    (0x651BCCB0340F0EF8, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (0, ()),
    layout.U64,
    None,
)

RUNNING = PACKAGE.method(
    "conformance.running",
    (0x651BCCB0340F0EF8, 0x4D2BDF193E8526D1, 0, 0),
    (0, ()),
    layout.U32,
)

FAIL = PACKAGE.method(
    "conformance.fail",
    (0xB73DE2D88B479BCF, 0x4D35D3193E8D66F2, 0x60ECA79926502947, 0),
    (24, (("how", 0, layout.option(_layout.FAILURE, 24, 4, 4)),)),
    layout.U64,
    _layout.FAILURE,
)

FAIL_LATER = PACKAGE.method(
    "conformance.fail-later",
    (0xB73DE2D88B479BCF, 0x4D35D3193E8D66F2, 0x60ECA79926502947, 0),
    (24, (("how", 0, layout.option(_layout.FAILURE, 24, 4, 4)),)),
    layout.U64,
    _layout.FAILURE,
)

FAIL_BARE = PACKAGE.method(
    "conformance.fail-bare",
    (0xE9F275AF332D9E37, 0xAF64124C8602484E, 0xAF64124C8602484E, 0),
    (1, (("fails", 0, layout.BOOL),)),
    None,
)

PANIC = PACKAGE.method(
    "conformance.panic",
    (0xAF37F91C28FF1CFA, 0x4D2BDF193E8526D1, 0, 0),
    (8, (("message", 0, layout.STRING),)),
    layout.U32,
)

PANIC_LATER = PACKAGE.method(
    "conformance.panic-later",
    (0xAF37F91C28FF1CFA, 0x4D2BDF193E8526D1, 0, 0),
    (8, (("message", 0, layout.STRING),)),
    layout.U32,
)

NEVER = PACKAGE.method(
    "conformance.never",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)

SLEEP = PACKAGE.method(
    "conformance.sleep",
    (0x3AC0F3E4996F8D7A, 0x4D2BDF193E8526D1, 0, 0),
    (4, (("milliseconds", 0, layout.U32),)),
    layout.U32,
)

COUNTER = PACKAGE.resource_method(
    "conformance.[constructor]counter",
    (0x5C007CC4AB28598B, 0x90E2C2E2269EA6AB, 0, 0),
    (8, (("start", 0, layout.U64),)),
)

COUNTER_ADD = PACKAGE.method(
    "conformance.[method]counter.add",
    (0x50B6E8AB3EF09346, 0x4D35D3193E8D66F2, 0, 0),
    (16, (("self_", 0, layout.BORROW), ("amount", 8, layout.U64))),
    layout.U64,
)

COUNTER_VALUE = PACKAGE.method(
    "conformance.[method]counter.value",
    (0x2F88670056CD31BB, 0x4D35D3193E8D66F2, 0, 0),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U64,
)

COUNTER_VALUE_LATER = PACKAGE.method(
    "conformance.[method]counter.value-later",
    (0x2F88670056CD31BB, 0x4D35D3193E8D66F2, 0, 0),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U64,
)

COUNTER_STEPS = PACKAGE.stream_method(
    "conformance.[method]counter.steps",
    (0x52D327DF39A70E2E, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (8, (("self_", 0, layout.BORROW), ("count", 4, layout.U32))),
    layout.U64,
    None,
)

COUNTER_SUM = PACKAGE.resource_method(
    "conformance.[static]counter.sum",
    (0x655FB9C02DEA6D6D, 0x90E2C2E2269EA6AB, 0, 0),
    (8, (("left", 0, layout.BORROW), ("right", 4, layout.BORROW))),
)

COUNTER_FINISH = PACKAGE.method(
    "conformance.[static]counter.finish",
    (0x0E0A0ABE32D4DF74, 0x4D35D3193E8D66F2, 0, 0),
    (4, (("counter", 0, layout.OWN),)),
    layout.U64,
)

EVEN = PACKAGE.resource_method(
    "conformance.[constructor]even",
    (0xA561509316E0793D, 0xA35202AD1AA13A51, 0x60ECA79926502947, 0),
    (4, (("value", 0, layout.U32),)),
    _layout.FAILURE,
)

EVEN_HALF = PACKAGE.method(
    "conformance.[method]even.half",
    (0x3ECA4E05D7083597, 0x4D2BDF193E8526D1, 0, 0),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U32,
)

COUNTERS = PACKAGE.method(
    "conformance.counters",
    (0x651BCCB0340F0EF8, 0x4D2BDF193E8526D1, 0, 0),
    (0, ()),
    layout.U32,
)

ECHO_KEY = PACKAGE.method(
    "conformance.echo-key",
    (0x94C4CFEF6C18ECD9, 0x9DF14221C82EC239, 0, 0),
    (16, (("value", 0, layout.bytes_of(16)),)),
    layout.bytes_of(16),
)

ECHO_THREE = PACKAGE.method(
    "conformance.echo-three",
    (0x5A9BE31B709590B7, 0xC6CA42BA16658413, 0, 0),
    (24, (("value", 0, layout.array_of(layout.S64, 3)),)),
    layout.array_of(layout.S64, 3),
)

ECHO_FIXED = PACKAGE.method(
    "conformance.echo-fixed",
    (0x1A26D9DBA60AEFB0, 0xFCB5C6C15130058A, 0, 0),
    (104, (("value", 0, _layout.FIXED),)),
    _layout.FIXED,
)

ECHO_KEYS = PACKAGE.method(
    "conformance.echo-keys",
    (0xA2249C6FBCF53102, 0x0D9C1C264335A61A, 0, 0),
    (8, (("value", 0, layout.list_of(layout.bytes_of(2))),)),
    layout.list_of(layout.bytes_of(2)),
)

MANY: layout.Method[tuple[int, str], tuple[int, str]] = PACKAGE.method(
    "conformance.many",
    (0x458E41DA0C4BCB95, 0xA2B8D302CDF6F855, 0, 0),
    (
        80,
        (
            ("a", 0, layout.U8),
            ("b", 2, layout.U16),
            ("c", 4, layout.U32),
            ("d", 8, layout.U64),
            ("e", 16, layout.U8),
            ("f", 20, layout.STRING),
            ("g", 28, layout.U16),
            ("h", 32, layout.U32),
            ("i", 36, layout.BYTES),
            ("j", 48, layout.U64),
            ("k", 56, layout.U8),
            ("n", 60, layout.option(layout.STRING, 12, 4, 4)),
            ("counter", 72, layout.BORROW),
            ("m", 76, layout.U16),
        ),
    ),
    layout.tuple_of(16, 8, (0, layout.U64), (8, layout.STRING)),
)

TWICE = PACKAGE.method(
    "conformance.twice",
    (0xA561509316E0793D, 0x4D35D3193E8D66F2, 0, 0),
    (4, (("value", 0, layout.U32),)),
    layout.U64,
)

FAIL_HERE = PACKAGE.method(
    "conformance.fail-here",
    (0xB73DE2D88B479BCF, 0x4D35D3193E8D66F2, 0x60ECA79926502947, 0),
    (24, (("how", 0, layout.option(_layout.FAILURE, 24, 4, 4)),)),
    layout.U64,
    _layout.FAILURE,
)

PANIC_HERE = PACKAGE.method(
    "conformance.panic-here",
    (0xAF37F91C28FF1CFA, 0x4D2BDF193E8526D1, 0, 0),
    (8, (("message", 0, layout.STRING),)),
    layout.U32,
)

ASK = PACKAGE.method(
    "conformance.ask",
    (0x77DB3263238FEB8E, 0x704BE0D8FAAFFC58, 0x4D2BDF193E8526D1, 0),
    (8, (("key", 0, layout.U64),)),
    layout.STRING,
    layout.U32,
)

ASK_LATER = PACKAGE.method(
    "conformance.ask-later",
    (0x77DB3263238FEB8E, 0x704BE0D8FAAFFC58, 0x4D2BDF193E8526D1, 0),
    (8, (("key", 0, layout.U64),)),
    layout.STRING,
    layout.U32,
)

TELL = PACKAGE.method(
    "conformance.tell",
    (0x2F97225A50D5698A, 0x4D35D3193E8D66F2, 0x4D2BDF193E8526D1, 0),
    (
        16,
        (
            ("words", 0, layout.list_of(layout.STRING)),
            ("at", 8, layout.option(layout.U32, 8, 4, 4)),
        ),
    ),
    layout.U64,
    layout.U32,
)

SAMPLES = PACKAGE.stream_method(
    "conformance.samples",
    (0x5544A970F8B8F1CF, 0x00998F3E55847F5A, 0, 0x487351E489EE85F2),
    (4, (("count", 0, layout.U32),)),
    _layout.SAMPLE,
    SampleView,
)

SHAPES = PACKAGE.stream_method(
    "conformance.shapes",
    (0x5544A970F8B8F1CF, 0x65B689029A7B2B54, 0, 0x418E0A15219AA3EC),
    (4, (("count", 0, layout.U32),)),
    _layout.SHAPE,
    None,
)

GIVE_COUNTERS = PACKAGE.method(
    "conformance.give-counters",
    (0xAE8C275EE725253E, 0x2258C1CD44FDFAA9, 0, 0),
    (16, (("start", 0, layout.U64), ("count", 8, layout.U32))),
    layout.list_of(layout.OWN),
)

TOTAL = PACKAGE.method(
    "conformance.total",
    (0x2E2F2F9BD28DF6E9, 0x4D35D3193E8D66F2, 0, 0),
    (8, (("counters", 0, layout.list_of(layout.OWN)),)),
    layout.U64,
)

FIRST_OF = PACKAGE.method(
    "conformance.first-of",
    (0xBBB4AB6093D124E5, 0x44E4685B99C5D2C1, 0, 0),
    (8, (("counter", 0, layout.option(layout.OWN, 8, 4, 4)),)),
    layout.option(layout.U64, 16, 8, 8),
)

SWAP = PACKAGE.method(
    "conformance.swap",
    (0x32476D7BFB76290E, 0xFDE16051B681D0FE, 0xDA84A440071241D1, 0),
    (20, (("value", 0, _layout.PAIR),)),
    _layout.PAIR,
    _layout.MAYBE_COUNTER,
)

REFUSE = PACKAGE.method(
    "conformance.refuse",
    (0x2CEEC65385D11381, 0xAF64124C8602484E, 0xDA84A440071241D1, 0),
    (12, (("value", 0, _layout.MAYBE_COUNTER),)),
    None,
    _layout.MAYBE_COUNTER,
)

LATER = PACKAGE.stream_method(
    "conformance.later",
    (0x2483FC9D15A741F8, 0xEBBE54FB16B05CA3, 0, 0x704BE0D8FAAFFC58),
    (12, (("milliseconds", 0, layout.U32), ("text", 4, layout.STRING))),
    layout.STRING,
    None,
)

NEVER_COMES = PACKAGE.stream_method(
    "conformance.never-comes",
    (0x44ACA970760A7719, 0x04793EB5EF2B0C28, 0x60ECA79926502947, 0x88909CE00E869DBF),
    (12, (("message", 0, layout.option(layout.STRING, 12, 4, 4)),)),
    _layout.POINT,
    None,
    _layout.FAILURE,
)

SCALE = PACKAGE.resource_method(
    "conformance.[constructor]scale",
    (0xFF9A7DDE4C618F66, 0xDEC3F56AECCD90E9, 0, 0),
    (8, (("by", 0, layout.U64),)),
)

SCALE_APPLY = PACKAGE.resource_method(
    "conformance.[method]scale.apply",
    (0xC5262531C7B530F8, 0x90E2C2E2269EA6AB, 0, 0),
    (8, (("self_", 0, layout.BORROW), ("counter", 4, layout.BORROW))),
)

TICKS = PACKAGE.stream_method(
    "conformance.ticks",
    (0x651BCCB0340F0EF8, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (0, ()),
    layout.U64,
    None,
)

TICK = PACKAGE.method(
    "conformance.tick",
    (0x5544A970F8B8F1CF, 0x4D2BDF193E8526D1, 0, 0),
    (4, (("count", 0, layout.U32),)),
    layout.U32,
)

MARK = PACKAGE.method(
    "conformance.mark",
    (0xD6CC6FF2C681525A, 0x4D2BDF193E8526D1, 0, 0),
    (8, (("number", 0, layout.U64),)),
    layout.U32,
)

END_TICKS = PACKAGE.method(
    "conformance.end-ticks",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)

DROPS_NEWEST = PACKAGE.stream_method(
    "conformance.drops-newest",
    (0x3BC93270EA6E6686, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

DROPS_OLDEST = PACKAGE.stream_method(
    "conformance.drops-oldest",
    (0x3BC93270EA6E6686, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

REFUSES = PACKAGE.stream_method(
    "conformance.refuses",
    (0x3BC93270EA6E6686, 0x9A7C28153B5D3C3A, 0, 0x4D35D3193E8D66F2),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

WAITING = PACKAGE.method(
    "conformance.waiting",
    (0x651BCCB0340F0EF8, 0x4D2BDF193E8526D1, 0, 0),
    (0, ()),
    layout.U32,
)

LOOKED_UP = PACKAGE.stream_method(
    "conformance.looked-up",
    (0x3BC93270EA6E6686, 0x99487982526F8A40, 0, 0x704BE0D8FAAFFC58),
    (8, (("count", 0, layout.U64),)),
    layout.STRING,
    None,
)

LEASE = PACKAGE.resource_method(
    "conformance.[constructor]lease",
    (0x1DE4C840B57A3080, 0x66370D527AE16849, 0x60ECA79926502947, 0),
    (4, (("ms", 0, layout.U32),)),
    _layout.FAILURE,
)

LEASE_MS = PACKAGE.method(
    "conformance.[method]lease.ms",
    (0xF09980DC8E3859B5, 0x4D2BDF193E8526D1, 0, 0),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U32,
)

LEASES: layout.Method[tuple[int, int], tuple[int, int]] = PACKAGE.method(
    "conformance.leases",
    (0x651BCCB0340F0EF8, 0x2700DD7D522CAFC9, 0, 0),
    (0, ()),
    layout.tuple_of(8, 4, (0, layout.U32), (4, layout.U32)),
)

SUM_OF: layout.Method[tuple[int, int], tuple[int, int]] = PACKAGE.method(
    "conformance.sum-of",
    (0x8ACB6C45C378D541, 0x09CA88268D982FD9, 0x4D2BDF193E8526D1, 0),
    (4, (("numbers", 0, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),)),
    layout.tuple_of(16, 8, (0, layout.U64), (8, layout.U64)),
    layout.U32,
)

NAMES_OF = PACKAGE.method(
    "conformance.names-of",
    (0xDDC4C126F3E0F510, 0x704BE0D8FAAFFC58, 0, 0),
    (4, (("items", 0, layout.stream_of(_layout.ITEM, 0x1FD3A7E2BF56062D)),)),
    layout.STRING,
)

FIRST_NUMBERS = PACKAGE.method(
    "conformance.first-numbers",
    (0x9A80034F802BC4B0, 0xAC6DCFA595542366, 0, 0),
    (
        8,
        (
            ("count", 0, layout.U32),
            ("numbers", 4, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),
        ),
    ),
    layout.list_of(layout.U64),
)

WORDS_FIRST: layout.Method[tuple[str, int], tuple[str, int]] = PACKAGE.method(
    "conformance.words-first",
    (0x033B819E089F0D6D, 0x733949A332EE2E43, 0, 0),
    (
        8,
        (
            ("numbers", 0, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),
            ("words", 4, layout.stream_of(layout.STRING, 0x704BE0D8FAAFFC58)),
        ),
    ),
    layout.tuple_of(16, 8, (0, layout.STRING), (8, layout.U64)),
)

ADD_ALL = PACKAGE.method(
    "conformance.add-all",
    (0xF4802F5DAB134FA9, 0x4D35D3193E8D66F2, 0, 0),
    (
        8,
        (
            ("counter", 0, layout.BORROW),
            ("amounts", 4, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),
        ),
    ),
    layout.U64,
)

HEAR = PACKAGE.method(
    "conformance.hear",
    (0x04F86A1329A6AF65, 0x704BE0D8FAAFFC58, 0x4D2BDF193E8526D1, 0),
    (4, (("text", 0, layout.future_of(layout.STRING, 0x704BE0D8FAAFFC58)),)),
    layout.STRING,
    layout.U32,
)

BEATS_OF = PACKAGE.method(
    "conformance.beats-of",
    (0x76170F7D081A63C8, 0x4D35D3193E8D66F2, 0, 0),
    (4, (("beats", 0, layout.stream_of(layout.NOTHING, 0xAF64124C8602484E)),)),
    layout.U64,
)

COMES = PACKAGE.method(
    "conformance.comes",
    (0x2D748BC05279196A, 0xAF64124C8602484E, 0x4D2BDF193E8526D1, 0),
    (4, (("signal", 0, layout.future_of(layout.NOTHING, 0xAF64124C8602484E)),)),
    None,
    layout.U32,
)

BEATS = PACKAGE.stream_method(
    "conformance.beats",
    (0x3BC93270EA6E6686, 0xDC2F54E76A3AEA36, 0, 0xAF64124C8602484E),
    (8, (("count", 0, layout.U64),)),
    layout.NOTHING,
    None,
)

SIGNAL = PACKAGE.stream_method(
    "conformance.signal",
    (0x3AC0F3E4996F8D7A, 0xF850E888E7C550D7, 0, 0xAF64124C8602484E),
    (4, (("milliseconds", 0, layout.U32),)),
    layout.NOTHING,
    None,
)

ASK_ALL = PACKAGE.method(
    "conformance.ask-all",
    (0x8555419AC16F9F45, 0xE6C60242A38CCB25, 0, 0),
    (4, (("keys", 0, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),)),
    layout.list_of(layout.result(layout.STRING, layout.U32, 12, 4, 4)),
)

HELD_UP = PACKAGE.method(
    "conformance.held-up",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)

LET_GO = PACKAGE.method(
    "conformance.let-go",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)

BITS = PACKAGE.stream_method(
    "conformance.bits",
    (0x5544A970F8B8F1CF, 0xFF8C8B15D2E5FAB3, 0, 0xCD2FD49BC6B014BD),
    (4, (("count", 0, layout.U32),)),
    layout.BOOL,
    None,
)

LETTERS = PACKAGE.stream_method(
    "conformance.letters",
    (0x5544A970F8B8F1CF, 0xA8D70FF8BE70DE37, 0, 0xF2A393910B5B3EBD),
    (4, (("count", 0, layout.U32),)),
    layout.CHAR,
    None,
)

MAYBES = PACKAGE.stream_method(
    "conformance.maybes",
    (0x5544A970F8B8F1CF, 0x4F1F18CBDEB595A7, 0, 0x4328605C80A6E68D),
    (4, (("count", 0, layout.U32),)),
    layout.option(layout.STRING, 12, 4, 4),
    None,
)

COUPLES: layout.Method[
    thalweg.Stream[tuple[int, str], tuple[int, str]],
    thalweg.AsyncStream[tuple[int, str], tuple[int, str]],
] = PACKAGE.stream_method(
    "conformance.couples",
    (0x5544A970F8B8F1CF, 0x9C625C0D8B98CE25, 0, 0x29BD3A586DF8689F),
    (4, (("count", 0, layout.U32),)),
    layout.tuple_of(12, 4, (0, layout.U8), (4, layout.STRING)),
    None,
)

ROWS = PACKAGE.stream_method(
    "conformance.rows",
    (0x5544A970F8B8F1CF, 0x1766BD5A34F87C2F, 0, 0xE9D570A5B853D555),
    (4, (("count", 0, layout.U32),)),
    layout.list_of(layout.U16),
    None,
)

OUTCOMES = PACKAGE.stream_method(
    "conformance.outcomes",
    (0x5544A970F8B8F1CF, 0x8098E8D6031D5125, 0, 0x74DFDE7D03A7164F),
    (4, (("count", 0, layout.U32),)),
    layout.result(layout.U32, layout.STRING, 12, 4, 4),
    None,
)

BY_NAME = PACKAGE.stream_method(
    "conformance.by-name",
    (0x48C7012AF7FCC97A, 0x172EB4133195D4AB, 0, 0x1FD3A7E2BF56062D),
    (16, (("names", 0, layout.U32), ("count", 8, layout.U64))),
    _layout.ITEM,
    ItemView,
)

FEEDS = PACKAGE.method(
    "conformance.feeds",
    (0x5544A970F8B8F1CF, 0x199B498E9C207C9A, 0, 0),
    (4, (("count", 0, layout.U32),)),
    layout.list_of(_layout.FEED),
)

ENDLESS_FEED = PACKAGE.method(
    "conformance.endless-feed",
    (0x651BCCB0340F0EF8, 0x35222084DEEDF19E, 0, 0),
    (0, ()),
    _layout.FEED,
)

MIXED: layout.Method[
    tuple[thalweg.HeldStream[None, None], thalweg.HeldFuture[Point]],
    tuple[thalweg.HeldStream[None, None], thalweg.HeldFuture[Point]],
] = PACKAGE.method(
    "conformance.mixed",
    (0x5544A970F8B8F1CF, 0x716473B1E9069AEB, 0x35222084DEEDF19E, 0),
    (4, (("count", 0, layout.U32),)),
    layout.tuple_of(
        8,
        4,
        (0, layout.stream_of(layout.NOTHING, 0xAF64124C8602484E)),
        (4, layout.future_of(_layout.POINT, 0x88909CE00E869DBF)),
    ),
    _layout.FEED,
    FeedException,
)

LEASE_DESTROY = PACKAGE.method(
    "conformance.[destructor]lease",
    (0xC28DD0875886542E, 0xAF64124C8602484E, 0, 0),
    (4, (("self_", 0, layout.OWN),)),
    None,
)

PACKAGE.asks(
    "oracle.look-up",
    "look_up",
    (0x77DB3263238FEB8E, 0x704BE0D8FAAFFC58, 0x4D35D3193E8D66F2, 0),
    (8, (("key", 0, layout.U64),)),
    layout.STRING,
    layout.U64,
)

PACKAGE.asks(
    "oracle.tell",
    "tell",
    (0x2F97225A50D5698A, 0x4D35D3193E8D66F2, 0, 0),
    (
        16,
        (
            ("words", 0, layout.list_of(layout.STRING)),
            ("at", 8, layout.option(layout.U32, 8, 4, 4)),
        ),
    ),
    layout.U64,
)

PACKAGE.asks(
    "oracle.nod",
    "nod",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)
