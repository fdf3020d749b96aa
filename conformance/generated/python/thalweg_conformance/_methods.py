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
    0x9575A3ACCBF63BCE,
    0xE8FF089C15F19119,
)

ECHO_BOOL = PACKAGE.method(
    "conformance.echo-bool",
    ("record{value:bool}", "bool", "", ""),
    (1, (("value", 0, layout.BOOL),)),
    layout.BOOL,
)

ECHO_U8 = PACKAGE.method(
    "conformance.echo-u8",
    ("record{value:u8}", "u8", "", ""),
    (1, (("value", 0, layout.U8),)),
    layout.U8,
)

ECHO_U16 = PACKAGE.method(
    "conformance.echo-u16",
    ("record{value:u16}", "u16", "", ""),
    (2, (("value", 0, layout.U16),)),
    layout.U16,
)

ECHO_U32 = PACKAGE.method(
    "conformance.echo-u32",
    ("record{value:u32}", "u32", "", ""),
    (4, (("value", 0, layout.U32),)),
    layout.U32,
)

ECHO_U64 = PACKAGE.method(
    "conformance.echo-u64",
    ("record{value:u64}", "u64", "", ""),
    (8, (("value", 0, layout.U64),)),
    layout.U64,
)

ECHO_S8 = PACKAGE.method(
    "conformance.echo-s8",
    ("record{value:s8}", "s8", "", ""),
    (1, (("value", 0, layout.S8),)),
    layout.S8,
)

ECHO_S16 = PACKAGE.method(
    "conformance.echo-s16",
    ("record{value:s16}", "s16", "", ""),
    (2, (("value", 0, layout.S16),)),
    layout.S16,
)

ECHO_S32 = PACKAGE.method(
    "conformance.echo-s32",
    ("record{value:s32}", "s32", "", ""),
    (4, (("value", 0, layout.S32),)),
    layout.S32,
)

ECHO_S64 = PACKAGE.method(
    "conformance.echo-s64",
    ("record{value:s64}", "s64", "", ""),
    (8, (("value", 0, layout.S64),)),
    layout.S64,
)

ECHO_F32 = PACKAGE.method(
    "conformance.echo-f32",
    ("record{value:f32}", "f32", "", ""),
    (4, (("value", 0, layout.F32),)),
    layout.F32,
)

ECHO_F64 = PACKAGE.method(
    "conformance.echo-f64",
    ("record{value:f64}", "f64", "", ""),
    (8, (("value", 0, layout.F64),)),
    layout.F64,
)

ECHO_CHAR = PACKAGE.method(
    "conformance.echo-char",
    ("record{value:char}", "char", "", ""),
    (4, (("value", 0, layout.CHAR),)),
    layout.CHAR,
)

ECHO_STRING = PACKAGE.method(
    "conformance.echo-string",
    ("record{value:string}", "string", "", ""),
    (8, (("value", 0, layout.STRING),)),
    layout.STRING,
)

ECHO_BYTES = PACKAGE.method(
    "conformance.echo-bytes",
    ("record{value:list<u8>}", "list<u8>", "", ""),
    (8, (("value", 0, layout.BYTES),)),
    layout.BYTES,
)

ECHO_BOOLS = PACKAGE.method(
    "conformance.echo-bools",
    ("record{value:list<bool>}", "list<bool>", "", ""),
    (8, (("value", 0, layout.list_of(layout.BOOL)),)),
    layout.list_of(layout.BOOL),
)

ECHO_NUMBERS = PACKAGE.method(
    "conformance.echo-numbers",
    ("record{value:list<s64>}", "list<s64>", "", ""),
    (8, (("value", 0, layout.list_of(layout.S64)),)),
    layout.list_of(layout.S64),
)

ECHO_FLOATS = PACKAGE.method(
    "conformance.echo-floats",
    ("record{value:list<f64>}", "list<f64>", "", ""),
    (8, (("value", 0, layout.list_of(layout.F64)),)),
    layout.list_of(layout.F64),
)

ECHO_STRINGS = PACKAGE.method(
    "conformance.echo-strings",
    ("record{value:list<string>}", "list<string>", "", ""),
    (8, (("value", 0, layout.list_of(layout.STRING)),)),
    layout.list_of(layout.STRING),
)

ECHO_GRID = PACKAGE.method(
    "conformance.echo-grid",
    ("record{value:list<list<s32>>}", "list<list<s32>>", "", ""),
    (8, (("value", 0, layout.list_of(layout.list_of(layout.S32))),)),
    layout.list_of(layout.list_of(layout.S32)),
)

ECHO_POINTS = PACKAGE.method(
    "conformance.echo-points",
    ("record{value:list<record{x:s32,y:s32}>}", "list<record{x:s32,y:s32}>", "", ""),
    (8, (("value", 0, layout.list_of(_layout.POINT)),)),
    layout.list_of(_layout.POINT),
)

ECHO_OPTION = PACKAGE.method(
    "conformance.echo-option",
    ("record{value:option<string>}", "option<string>", "", ""),
    (12, (("value", 0, layout.option(layout.STRING, 12, 4, 4)),)),
    layout.option(layout.STRING, 12, 4, 4),
)

ECHO_OPTION_TWICE = PACKAGE.method(
    "conformance.echo-option-twice",
    ("record{value:option<option<u32>>}", "option<option<u32>>", "", ""),
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
    ("record{value:tuple<result<u64,string>>}", "tuple<result<u64,string>>", "", ""),
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
    ("record{value:list<result<u32,_>>}", "list<result<u32,_>>", "", ""),
    (8, (("value", 0, layout.list_of(layout.result(layout.U32, None, 8, 4, 4))),)),
    layout.list_of(layout.result(layout.U32, None, 8, 4, 4)),
)

ECHO_RESULT_ERROR = PACKAGE.method(
    "conformance.echo-result-error",
    ("record{value:list<result<_,string>>}", "list<result<_,string>>", "", ""),
    (8, (("value", 0, layout.list_of(layout.result(None, layout.STRING, 12, 4, 4))),)),
    layout.list_of(layout.result(None, layout.STRING, 12, 4, 4)),
)

ECHO_RESULT_BARE = PACKAGE.method(
    "conformance.echo-result-bare",
    ("record{value:list<result<_,_>>}", "list<result<_,_>>", "", ""),
    (8, (("value", 0, layout.list_of(layout.result(None, None, 1, 1, 1))),)),
    layout.list_of(layout.result(None, None, 1, 1, 1)),
)

ECHO_TUPLE: layout.Method[
    tuple[int, str, float, str | None],
    tuple[int, str, float, str | None],
] = PACKAGE.method(
    "conformance.echo-tuple",
    (
        "record{value:tuple<u8,string,f64,option<char>>}",
        "tuple<u8,string,f64,option<char>>",
        "",
        "",
    ),
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
    ("record{value:record{x:s32,y:s32}}", "record{x:s32,y:s32}", "", ""),
    (8, (("value", 0, _layout.POINT),)),
    _layout.POINT,
)

ECHO_SPOT = PACKAGE.method(
    "conformance.echo-spot",
    ("record{value:record{x:s32,y:s32}}", "record{x:s32,y:s32}", "", ""),
    (8, (("value", 0, _layout.POINT),)),
    _layout.POINT,
)

ECHO_SCALARS = PACKAGE.method(
    "conformance.echo-scalars",
    (
        "record{value:record{a-bool:bool,a-u64:u64,a-u8:u8,a-u16:u16,a-s8:s8,a-u32:u32,a-s16:s16,a-f64:f64,a-char:char,a-s64:s64,a-f32:f32,a-s32:s32}}",
        "record{a-bool:bool,a-u64:u64,a-u8:u8,a-u16:u16,a-s8:s8,a-u32:u32,a-s16:s16,a-f64:f64,a-char:char,a-s64:s64,a-f32:f32,a-s32:s32}",
        "",
        "",
    ),
    (64, (("value", 0, _layout.SCALARS),)),
    _layout.SCALARS,
)

ECHO_NESTED = PACKAGE.method(
    "conformance.echo-nested",
    (
        "record{value:record{text:string,bytes:list<u8>,names:list<string>,grid:list<list<s32>>,maybe:option<string>,twice:option<option<u32>>,outcomes:list<result<record{x:s32,y:s32},string>>,pairs:list<tuple<string,option<list<u8>>>>,shapes:list<variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}>,color:enum{red,green,bool},rights:flags{read,write,record},aliased:list<string>}}",
        "record{text:string,bytes:list<u8>,names:list<string>,grid:list<list<s32>>,maybe:option<string>,twice:option<option<u32>>,outcomes:list<result<record{x:s32,y:s32},string>>,pairs:list<tuple<string,option<list<u8>>>>,shapes:list<variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}>,color:enum{red,green,bool},rights:flags{read,write,record},aliased:list<string>}",
        "",
        "",
    ),
    (92, (("value", 0, _layout.NESTED),)),
    _layout.NESTED,
)

ECHO_KEYWORDS = PACKAGE.method(
    "conformance.echo-keywords",
    (
        "record{value:record{type:u8,match:string,async:bool,self:u8,crate:u16,super:u32,fn:u64,class:string,def:string,lambda:string,none:option<u8>,return:s32,struct:s32,int:s32,default:s32,register:s32,static:s32,import:s32,from:s32,yield:s32,await:s32,nullptr:s32,errno:s32}}",
        "record{type:u8,match:string,async:bool,self:u8,crate:u16,super:u32,fn:u64,class:string,def:string,lambda:string,none:option<u8>,return:s32,struct:s32,int:s32,default:s32,register:s32,static:s32,import:s32,from:s32,yield:s32,await:s32,nullptr:s32,errno:s32}",
        "",
        "",
    ),
    (112, (("value", 0, _layout.KEYWORDS),)),
    _layout.KEYWORDS,
)

ECHO_SHAPE = PACKAGE.method(
    "conformance.echo-shape",
    (
        "record{value:variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}}",
        "variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}",
        "",
        "",
    ),
    (24, (("value", 0, _layout.SHAPE),)),
    _layout.SHAPE,
)

ECHO_SHAPES = PACKAGE.method(
    "conformance.echo-shapes",
    (
        "record{value:list<variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}>}",
        "list<variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}>",
        "",
        "",
    ),
    (8, (("value", 0, layout.list_of(_layout.SHAPE)),)),
    layout.list_of(_layout.SHAPE),
)

ECHO_COLOR = PACKAGE.method(
    "conformance.echo-color",
    ("record{value:enum{red,green,bool}}", "enum{red,green,bool}", "", ""),
    (1, (("value", 0, _layout.COLOR),)),
    _layout.COLOR,
)

ECHO_COLORS = PACKAGE.method(
    "conformance.echo-colors",
    ("record{value:list<enum{red,green,bool}>}", "list<enum{red,green,bool}>", "", ""),
    (8, (("value", 0, layout.list_of(_layout.COLOR)),)),
    layout.list_of(_layout.COLOR),
)

ECHO_RIGHTS = PACKAGE.method(
    "conformance.echo-rights",
    ("record{value:flags{read,write,record}}", "flags{read,write,record}", "", ""),
    (1, (("value", 0, _layout.RIGHTS),)),
    _layout.RIGHTS,
)

ECHO_DAYS = PACKAGE.method(
    "conformance.echo-days",
    (
        "record{value:flags{monday,tuesday,wednesday,thursday,friday,saturday,sunday,holiday,workday}}",
        "flags{monday,tuesday,wednesday,thursday,friday,saturday,sunday,holiday,workday}",
        "",
        "",
    ),
    (2, (("value", 0, _layout.DAYS),)),
    _layout.DAYS,
)

ECHO_WIDE = PACKAGE.method(
    "conformance.echo-wide",
    (
        "record{value:flags{b0,b1,b2,b3,b4,b5,b6,b7,b8,b9,b10,b11,b12,b13,b14,b15,b16,b17,b18,b19,b20,b21,b22,b23,b24,b25,b26,b27,b28,b29,b30,b31}}",
        "flags{b0,b1,b2,b3,b4,b5,b6,b7,b8,b9,b10,b11,b12,b13,b14,b15,b16,b17,b18,b19,b20,b21,b22,b23,b24,b25,b26,b27,b28,b29,b30,b31}",
        "",
        "",
    ),
    (4, (("value", 0, _layout.WIDE),)),
    _layout.WIDE,
)

ECHO_NAMES = PACKAGE.method(
    "conformance.echo-names",
    ("record{value:list<string>}", "list<string>", "", ""),
    (8, (("value", 0, layout.list_of(layout.STRING)),)),
    layout.list_of(layout.STRING),
)

ECHO_FAILURE = PACKAGE.method(
    "conformance.echo-failure",
    (
        "record{value:variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}}",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "",
        "",
    ),
    (20, (("value", 0, _layout.FAILURE),)),
    _layout.FAILURE,
)

SEVERAL: layout.Method[
    tuple[int, str, list[int], Point | None],
    tuple[int, str, list[int], Point | None],
] = PACKAGE.method(
    "conformance.several",
    (
        "record{type:u8,match:string,list:list<u16>,bool:option<record{x:s32,y:s32}>}",
        "tuple<u8,string,list<u16>,option<record{x:s32,y:s32}>>",
        "",
        "",
    ),
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
    ("record{}", "_", "", ""),
    (0, ()),
    None,
)

COUNT = PACKAGE.stream_method(
    "conformance.count",
    ("record{first:u64,count:u64}", "stream<u64>", "", "u64"),
    (16, (("first", 0, layout.U64), ("count", 8, layout.U64))),
    layout.U64,
    None,
)

ITEMS = PACKAGE.stream_method(
    "conformance.items",
    (
        "record{count:u64}",
        "stream<record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}>",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}",
    ),
    (8, (("count", 0, layout.U64),)),
    _layout.ITEM,
    ItemView,
    _layout.FAILURE,
)

LATEST = PACKAGE.stream_method(
    "conformance.latest",
    ("record{count:u64}", "stream<u64>", "", "u64"),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

BREAKS = PACKAGE.stream_method(
    "conformance.breaks",
    ("record{after:u64}", "stream<u64>", "", "u64"),
    (8, (("after", 0, layout.U64),)),
    layout.U64,
    None,
)

ENDLESS = PACKAGE.stream_method(
    "conformance.endless",
    ("record{}", "stream<u64>", "", "u64"),
    (0, ()),
    layout.U64,
    None,
)

RUNNING = PACKAGE.method(
    "conformance.running",
    ("record{}", "u32", "", ""),
    (0, ()),
    layout.U32,
)

FAIL = PACKAGE.method(
    "conformance.fail",
    (
        "record{how:option<variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}>}",
        "u64",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "",
    ),
    (24, (("how", 0, layout.option(_layout.FAILURE, 24, 4, 4)),)),
    layout.U64,
    _layout.FAILURE,
)

FAIL_LATER = PACKAGE.method(
    "conformance.fail-later",
    (
        "record{how:option<variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}>}",
        "u64",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "",
    ),
    (24, (("how", 0, layout.option(_layout.FAILURE, 24, 4, 4)),)),
    layout.U64,
    _layout.FAILURE,
)

FAIL_BARE = PACKAGE.method(
    "conformance.fail-bare",
    ("record{fails:bool}", "_", "_", ""),
    (1, (("fails", 0, layout.BOOL),)),
    None,
)

PANIC = PACKAGE.method(
    "conformance.panic",
    ("record{message:string}", "u32", "", ""),
    (8, (("message", 0, layout.STRING),)),
    layout.U32,
)

PANIC_LATER = PACKAGE.method(
    "conformance.panic-later",
    ("record{message:string}", "u32", "", ""),
    (8, (("message", 0, layout.STRING),)),
    layout.U32,
)

NEVER = PACKAGE.method("conformance.never", ("record{}", "_", "", ""), (0, ()), None)

SLEEP = PACKAGE.method(
    "conformance.sleep",
    ("record{milliseconds:u32}", "u32", "", ""),
    (4, (("milliseconds", 0, layout.U32),)),
    layout.U32,
)

COUNTER = PACKAGE.resource_method(
    "conformance.[constructor]counter",
    ("record{start:u64}", "own<counter>", "", ""),
    (8, (("start", 0, layout.U64),)),
)

COUNTER_ADD = PACKAGE.method(
    "conformance.[method]counter.add",
    ("record{self:borrow<counter>,amount:u64}", "u64", "", ""),
    (16, (("self_", 0, layout.BORROW), ("amount", 8, layout.U64))),
    layout.U64,
)

COUNTER_VALUE = PACKAGE.method(
    "conformance.[method]counter.value",
    ("record{self:borrow<counter>}", "u64", "", ""),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U64,
)

COUNTER_VALUE_LATER = PACKAGE.method(
    "conformance.[method]counter.value-later",
    ("record{self:borrow<counter>}", "u64", "", ""),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U64,
)

COUNTER_STEPS = PACKAGE.stream_method(
    "conformance.[method]counter.steps",
    ("record{self:borrow<counter>,count:u32}", "stream<u64>", "", "u64"),
    (8, (("self_", 0, layout.BORROW), ("count", 4, layout.U32))),
    layout.U64,
    None,
)

COUNTER_SUM = PACKAGE.resource_method(
    "conformance.[static]counter.sum",
    ("record{left:borrow<counter>,right:borrow<counter>}", "own<counter>", "", ""),
    (8, (("left", 0, layout.BORROW), ("right", 4, layout.BORROW))),
)

COUNTER_FINISH = PACKAGE.method(
    "conformance.[static]counter.finish",
    ("record{counter:own<counter>}", "u64", "", ""),
    (4, (("counter", 0, layout.OWN),)),
    layout.U64,
)

EVEN = PACKAGE.resource_method(
    "conformance.[constructor]even",
    (
        "record{value:u32}",
        "own<even>",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "",
    ),
    (4, (("value", 0, layout.U32),)),
    _layout.FAILURE,
)

EVEN_HALF = PACKAGE.method(
    "conformance.[method]even.half",
    ("record{self:borrow<even>}", "u32", "", ""),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U32,
)

COUNTERS = PACKAGE.method(
    "conformance.counters",
    ("record{}", "u32", "", ""),
    (0, ()),
    layout.U32,
)

ECHO_KEY = PACKAGE.method(
    "conformance.echo-key",
    ("record{value:list<u8,16>}", "list<u8,16>", "", ""),
    (16, (("value", 0, layout.bytes_of(16)),)),
    layout.bytes_of(16),
)

ECHO_THREE = PACKAGE.method(
    "conformance.echo-three",
    ("record{value:list<s64,3>}", "list<s64,3>", "", ""),
    (24, (("value", 0, layout.array_of(layout.S64, 3)),)),
    layout.array_of(layout.S64, 3),
)

ECHO_FIXED = PACKAGE.method(
    "conformance.echo-fixed",
    (
        "record{value:record{flag:bool,key:list<u8,5>,place:list<f64,3>,names:list<string,2>,grid:list<list<u16,2>,2>,colors:list<enum{red,green,bool},2>,maybe:option<list<option<string>,2>>,corners:list<record{x:s32,y:s32},2>}}",
        "record{flag:bool,key:list<u8,5>,place:list<f64,3>,names:list<string,2>,grid:list<list<u16,2>,2>,colors:list<enum{red,green,bool},2>,maybe:option<list<option<string>,2>>,corners:list<record{x:s32,y:s32},2>}",
        "",
        "",
    ),
    (104, (("value", 0, _layout.FIXED),)),
    _layout.FIXED,
)

ECHO_KEYS = PACKAGE.method(
    "conformance.echo-keys",
    ("record{value:list<list<u8,2>>}", "list<list<u8,2>>", "", ""),
    (8, (("value", 0, layout.list_of(layout.bytes_of(2))),)),
    layout.list_of(layout.bytes_of(2)),
)

MANY: layout.Method[tuple[int, str], tuple[int, str]] = PACKAGE.method(
    "conformance.many",
    (
        "record{a:u8,b:u16,c:u32,d:u64,e:u8,f:string,g:u16,h:u32,i:list<u8>,j:u64,k:u8,n:option<string>,counter:borrow<counter>,m:u16}",
        "tuple<u64,string>",
        "",
        "",
    ),
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
    ("record{value:u32}", "u64", "", ""),
    (4, (("value", 0, layout.U32),)),
    layout.U64,
)

FAIL_HERE = PACKAGE.method(
    "conformance.fail-here",
    (
        "record{how:option<variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}>}",
        "u64",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "",
    ),
    (24, (("how", 0, layout.option(_layout.FAILURE, 24, 4, 4)),)),
    layout.U64,
    _layout.FAILURE,
)

PANIC_HERE = PACKAGE.method(
    "conformance.panic-here",
    ("record{message:string}", "u32", "", ""),
    (8, (("message", 0, layout.STRING),)),
    layout.U32,
)

ASK = PACKAGE.method(
    "conformance.ask",
    ("record{key:u64}", "string", "u32", ""),
    (8, (("key", 0, layout.U64),)),
    layout.STRING,
    layout.U32,
)

ASK_LATER = PACKAGE.method(
    "conformance.ask-later",
    ("record{key:u64}", "string", "u32", ""),
    (8, (("key", 0, layout.U64),)),
    layout.STRING,
    layout.U32,
)

TELL = PACKAGE.method(
    "conformance.tell",
    ("record{words:list<string>,at:option<u32>}", "u64", "u32", ""),
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
    (
        "record{count:u32}",
        "stream<record{number:u32,at:record{x:s32,y:s32},all:record{a-bool:bool,a-u64:u64,a-u8:u8,a-u16:u16,a-s8:s8,a-u32:u32,a-s16:s16,a-f64:f64,a-char:char,a-s64:s64,a-f32:f32,a-s32:s32},weight:option<f64>,color:enum{red,green,bool},days:flags{monday,tuesday,wednesday,thursday,friday,saturday,sunday,holiday,workday},pair:tuple<u8,u64>,name:option<string>,corners:list<record{x:s32,y:s32}>}>",
        "",
        "record{number:u32,at:record{x:s32,y:s32},all:record{a-bool:bool,a-u64:u64,a-u8:u8,a-u16:u16,a-s8:s8,a-u32:u32,a-s16:s16,a-f64:f64,a-char:char,a-s64:s64,a-f32:f32,a-s32:s32},weight:option<f64>,color:enum{red,green,bool},days:flags{monday,tuesday,wednesday,thursday,friday,saturday,sunday,holiday,workday},pair:tuple<u8,u64>,name:option<string>,corners:list<record{x:s32,y:s32}>}",
    ),
    (4, (("count", 0, layout.U32),)),
    _layout.SAMPLE,
    SampleView,
)

SHAPES = PACKAGE.stream_method(
    "conformance.shapes",
    (
        "record{count:u32}",
        "stream<variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}>",
        "",
        "variant{circle(f64),line(tuple<record{x:s32,y:s32},record{x:s32,y:s32}>),label(string),polygon(list<record{x:s32,y:s32}>),nothing,static(u8)}",
    ),
    (4, (("count", 0, layout.U32),)),
    _layout.SHAPE,
    None,
)

GIVE_COUNTERS = PACKAGE.method(
    "conformance.give-counters",
    ("record{start:u64,count:u32}", "list<own<counter>>", "", ""),
    (16, (("start", 0, layout.U64), ("count", 8, layout.U32))),
    layout.list_of(layout.OWN),
)

TOTAL = PACKAGE.method(
    "conformance.total",
    ("record{counters:list<own<counter>>}", "u64", "", ""),
    (8, (("counters", 0, layout.list_of(layout.OWN)),)),
    layout.U64,
)

FIRST_OF = PACKAGE.method(
    "conformance.first-of",
    ("record{counter:option<own<counter>>}", "option<u64>", "", ""),
    (8, (("counter", 0, layout.option(layout.OWN, 8, 4, 4)),)),
    layout.option(layout.U64, 16, 8, 8),
)

SWAP = PACKAGE.method(
    "conformance.swap",
    (
        "record{value:record{name:string,left:own<counter>,right:option<own<counter>>}}",
        "record{name:string,left:own<counter>,right:option<own<counter>>}",
        "variant{one(own<counter>),several(list<own<counter>>),no}",
        "",
    ),
    (20, (("value", 0, _layout.PAIR),)),
    _layout.PAIR,
    _layout.MAYBE_COUNTER,
)

REFUSE = PACKAGE.method(
    "conformance.refuse",
    (
        "record{value:variant{one(own<counter>),several(list<own<counter>>),no}}",
        "_",
        "variant{one(own<counter>),several(list<own<counter>>),no}",
        "",
    ),
    (12, (("value", 0, _layout.MAYBE_COUNTER),)),
    None,
    _layout.MAYBE_COUNTER,
)

LATER = PACKAGE.stream_method(
    "conformance.later",
    ("record{milliseconds:u32,text:string}", "future<string>", "", "string"),
    (12, (("milliseconds", 0, layout.U32), ("text", 4, layout.STRING))),
    layout.STRING,
    None,
)

NEVER_COMES = PACKAGE.stream_method(
    "conformance.never-comes",
    (
        "record{message:option<string>}",
        "future<record{x:s32,y:s32}>",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "record{x:s32,y:s32}",
    ),
    (12, (("message", 0, layout.option(layout.STRING, 12, 4, 4)),)),
    _layout.POINT,
    None,
    _layout.FAILURE,
)

SCALE = PACKAGE.resource_method(
    "conformance.[constructor]scale",
    ("record{by:u64}", "own<scale>", "", ""),
    (8, (("by", 0, layout.U64),)),
)

SCALE_APPLY = PACKAGE.resource_method(
    "conformance.[method]scale.apply",
    ("record{self:borrow<scale>,counter:borrow<counter>}", "own<counter>", "", ""),
    (8, (("self_", 0, layout.BORROW), ("counter", 4, layout.BORROW))),
)

TICKS = PACKAGE.stream_method(
    "conformance.ticks",
    ("record{}", "stream<u64>", "", "u64"),
    (0, ()),
    layout.U64,
    None,
)

TICK = PACKAGE.method(
    "conformance.tick",
    ("record{count:u32}", "u32", "", ""),
    (4, (("count", 0, layout.U32),)),
    layout.U32,
)

MARK = PACKAGE.method(
    "conformance.mark",
    ("record{number:u64}", "u32", "", ""),
    (8, (("number", 0, layout.U64),)),
    layout.U32,
)

END_TICKS = PACKAGE.method(
    "conformance.end-ticks",
    ("record{}", "_", "", ""),
    (0, ()),
    None,
)

DROPS_NEWEST = PACKAGE.stream_method(
    "conformance.drops-newest",
    ("record{count:u64}", "stream<u64>", "", "u64"),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

DROPS_OLDEST = PACKAGE.stream_method(
    "conformance.drops-oldest",
    ("record{count:u64}", "stream<u64>", "", "u64"),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

REFUSES = PACKAGE.stream_method(
    "conformance.refuses",
    ("record{count:u64}", "stream<u64>", "", "u64"),
    (8, (("count", 0, layout.U64),)),
    layout.U64,
    None,
)

WAITING = PACKAGE.method(
    "conformance.waiting",
    ("record{}", "u32", "", ""),
    (0, ()),
    layout.U32,
)

LOOKED_UP = PACKAGE.stream_method(
    "conformance.looked-up",
    ("record{count:u64}", "stream<string>", "", "string"),
    (8, (("count", 0, layout.U64),)),
    layout.STRING,
    None,
)

LEASE = PACKAGE.resource_method(
    "conformance.[constructor]lease",
    (
        "record{ms:u32}",
        "own<lease>",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "",
    ),
    (4, (("ms", 0, layout.U32),)),
    _layout.FAILURE,
)

LEASE_MS = PACKAGE.method(
    "conformance.[method]lease.ms",
    ("record{self:borrow<lease>}", "u32", "", ""),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U32,
)

LEASES: layout.Method[tuple[int, int], tuple[int, int]] = PACKAGE.method(
    "conformance.leases",
    ("record{}", "tuple<u32,u32>", "", ""),
    (0, ()),
    layout.tuple_of(8, 4, (0, layout.U32), (4, layout.U32)),
)

SUM_OF: layout.Method[tuple[int, int], tuple[int, int]] = PACKAGE.method(
    "conformance.sum-of",
    ("record{numbers:stream<u64>}", "tuple<u64,u64>", "u32", ""),
    (4, (("numbers", 0, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),)),
    layout.tuple_of(16, 8, (0, layout.U64), (8, layout.U64)),
    layout.U32,
)

NAMES_OF = PACKAGE.method(
    "conformance.names-of",
    (
        "record{items:stream<record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}>}",
        "string",
        "",
        "",
    ),
    (4, (("items", 0, layout.stream_of(_layout.ITEM, 0x1FD3A7E2BF56062D)),)),
    layout.STRING,
)

FIRST_NUMBERS = PACKAGE.method(
    "conformance.first-numbers",
    ("record{count:u32,numbers:stream<u64>}", "list<u64>", "", ""),
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
    ("record{numbers:stream<u64>,words:stream<string>}", "tuple<string,u64>", "", ""),
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
    ("record{counter:borrow<counter>,amounts:stream<u64>}", "u64", "", ""),
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
    ("record{text:future<string>}", "string", "u32", ""),
    (4, (("text", 0, layout.future_of(layout.STRING, 0x704BE0D8FAAFFC58)),)),
    layout.STRING,
    layout.U32,
)

BEATS_OF = PACKAGE.method(
    "conformance.beats-of",
    ("record{beats:stream<_>}", "u64", "", ""),
    (4, (("beats", 0, layout.stream_of(layout.NOTHING, 0xAF64124C8602484E)),)),
    layout.U64,
)

COMES = PACKAGE.method(
    "conformance.comes",
    ("record{signal:future<_>}", "_", "u32", ""),
    (4, (("signal", 0, layout.future_of(layout.NOTHING, 0xAF64124C8602484E)),)),
    None,
    layout.U32,
)

BEATS = PACKAGE.stream_method(
    "conformance.beats",
    ("record{count:u64}", "stream<_>", "", "_"),
    (8, (("count", 0, layout.U64),)),
    layout.NOTHING,
    None,
)

SIGNAL = PACKAGE.stream_method(
    "conformance.signal",
    ("record{milliseconds:u32}", "future<_>", "", "_"),
    (4, (("milliseconds", 0, layout.U32),)),
    layout.NOTHING,
    None,
)

ASK_ALL = PACKAGE.method(
    "conformance.ask-all",
    ("record{keys:stream<u64>}", "list<result<string,u32>>", "", ""),
    (4, (("keys", 0, layout.stream_of(layout.U64, 0x4D35D3193E8D66F2)),)),
    layout.list_of(layout.result(layout.STRING, layout.U32, 12, 4, 4)),
)

HELD_UP = PACKAGE.method(
    "conformance.held-up",
    ("record{}", "_", "", ""),
    (0, ()),
    None,
)

LET_GO = PACKAGE.method("conformance.let-go", ("record{}", "_", "", ""), (0, ()), None)

BITS = PACKAGE.stream_method(
    "conformance.bits",
    ("record{count:u32}", "stream<bool>", "", "bool"),
    (4, (("count", 0, layout.U32),)),
    layout.BOOL,
    None,
)

LETTERS = PACKAGE.stream_method(
    "conformance.letters",
    ("record{count:u32}", "stream<char>", "", "char"),
    (4, (("count", 0, layout.U32),)),
    layout.CHAR,
    None,
)

MAYBES = PACKAGE.stream_method(
    "conformance.maybes",
    ("record{count:u32}", "stream<option<string>>", "", "option<string>"),
    (4, (("count", 0, layout.U32),)),
    layout.option(layout.STRING, 12, 4, 4),
    None,
)

COUPLES: layout.Method[
    thalweg.Stream[tuple[int, str], tuple[int, str]],
    thalweg.AsyncStream[tuple[int, str], tuple[int, str]],
] = PACKAGE.stream_method(
    "conformance.couples",
    ("record{count:u32}", "stream<tuple<u8,string>>", "", "tuple<u8,string>"),
    (4, (("count", 0, layout.U32),)),
    layout.tuple_of(12, 4, (0, layout.U8), (4, layout.STRING)),
    None,
)

ROWS = PACKAGE.stream_method(
    "conformance.rows",
    ("record{count:u32}", "stream<list<u16>>", "", "list<u16>"),
    (4, (("count", 0, layout.U32),)),
    layout.list_of(layout.U16),
    None,
)

OUTCOMES = PACKAGE.stream_method(
    "conformance.outcomes",
    ("record{count:u32}", "stream<result<u32,string>>", "", "result<u32,string>"),
    (4, (("count", 0, layout.U32),)),
    layout.result(layout.U32, layout.STRING, 12, 4, 4),
    None,
)

BY_NAME = PACKAGE.stream_method(
    "conformance.by-name",
    (
        "record{names:u32,count:u64}",
        "stream<record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}>",
        "",
        "record{number:u64,name:string,tags:list<string>,blob:option<list<u8>>}",
    ),
    (16, (("names", 0, layout.U32), ("count", 8, layout.U64))),
    _layout.ITEM,
    ItemView,
)

FEEDS = PACKAGE.method(
    "conformance.feeds",
    (
        "record{count:u32}",
        "list<record{name:string,numbers:stream<u64>,last:option<future<string>>}>",
        "",
        "",
    ),
    (4, (("count", 0, layout.U32),)),
    layout.list_of(_layout.FEED),
)

ENDLESS_FEED = PACKAGE.method(
    "conformance.endless-feed",
    (
        "record{}",
        "record{name:string,numbers:stream<u64>,last:option<future<string>>}",
        "",
        "",
    ),
    (0, ()),
    _layout.FEED,
)

MIXED: layout.Method[
    tuple[thalweg.HeldStream[None, None], thalweg.HeldFuture[Point]],
    tuple[thalweg.HeldStream[None, None], thalweg.HeldFuture[Point]],
] = PACKAGE.method(
    "conformance.mixed",
    (
        "record{count:u32}",
        "tuple<stream<_>,future<record{x:s32,y:s32}>>",
        "record{name:string,numbers:stream<u64>,last:option<future<string>>}",
        "",
    ),
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

LIMITED = PACKAGE.method(
    "conformance.limited",
    ("record{}", "_", "", ""),
    (0, ()),
    None,
)

STOPS = PACKAGE.stream_method(
    "conformance.stops",
    (
        "record{count:u64,how:string}",
        "stream<u64>",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "u64",
    ),
    (16, (("count", 0, layout.U64), ("how", 8, layout.STRING))),
    layout.U64,
    None,
    _layout.FAILURE,
)

ROWS_OF = PACKAGE.stream_method(
    "conformance.rows-of",
    ("record{count:u32,size:u32}", "stream<string>", "", "string"),
    (8, (("count", 0, layout.U32), ("size", 4, layout.U32))),
    layout.STRING,
    None,
)

FAILS_TO_COME = PACKAGE.stream_method(
    "conformance.fails-to-come",
    (
        "record{code:u32}",
        "future<record{x:s32,y:s32}>",
        "variant{unknown,code(u32),at(tuple<string,record{x:s32,y:s32}>)}",
        "record{x:s32,y:s32}",
    ),
    (4, (("code", 0, layout.U32),)),
    _layout.POINT,
    None,
    _layout.FAILURE,
)

LEASE_DESTROY = PACKAGE.method(
    "conformance.[destructor]lease",
    ("record{self:own<lease>}", "_", "", ""),
    (4, (("self_", 0, layout.OWN),)),
    None,
)

PACKAGE.asks(
    "oracle.look-up",
    "look_up",
    ("record{key:u64}", "string", "u64", ""),
    (8, (("key", 0, layout.U64),)),
    layout.STRING,
    layout.U64,
)

PACKAGE.asks(
    "oracle.tell",
    "tell",
    ("record{words:list<string>,at:option<u32>}", "u64", "", ""),
    (
        16,
        (
            ("words", 0, layout.list_of(layout.STRING)),
            ("at", 8, layout.option(layout.U32, 8, 4, 4)),
        ),
    ),
    layout.U64,
)

PACKAGE.asks("oracle.nod", "nod", ("record{}", "_", "", ""), (0, ()), None)
