# Written by `thalweg gen` from thalweg:recipes@0.1.0. Do not edit.
"""What thalweg:recipes@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import ProgressView, SettingView

PACKAGE = layout.Package("thalweg:recipes", "0.1.0", 0xCB10B9F680A83B47)

JOB = PACKAGE.resource_method(
    "recipes.[constructor]job",
    (
        "record{steps:u32,step-ms:u32}",
        "own<job>",
        "variant{empty,failed-step(u32)}",
        "",
    ),
    (8, (("steps", 0, layout.U32), ("step_ms", 4, layout.U32))),
    _layout.JOB_ERROR,
)

JOB_RUN = PACKAGE.method(
    "recipes.[method]job.run",
    ("record{self:borrow<job>}", "u32", "variant{empty,failed-step(u32)}", ""),
    (4, (("self_", 0, layout.BORROW),)),
    layout.U32,
    _layout.JOB_ERROR,
)

JOB_PROGRESS = PACKAGE.stream_method(
    "recipes.[method]job.progress",
    (
        "record{self:borrow<job>}",
        "stream<record{done:u32,total:u32}>",
        "",
        "record{done:u32,total:u32}",
    ),
    (4, (("self_", 0, layout.BORROW),)),
    _layout.PROGRESS,
    ProgressView,
)

SET = PACKAGE.method(
    "recipes.set",
    ("record{setting:record{name:string,value:string}}", "_", "", ""),
    (16, (("setting", 0, _layout.SETTING),)),
    None,
)

WATCH = PACKAGE.stream_method(
    "recipes.watch",
    (
        "record{}",
        "stream<record{name:string,value:string}>",
        "",
        "record{name:string,value:string}",
    ),
    (0, ()),
    _layout.SETTING,
    SettingView,
)

DIGEST = PACKAGE.method(
    "recipes.digest",
    ("record{text:string}", "u64", "", ""),
    (8, (("text", 0, layout.STRING),)),
    layout.U64,
)

STEPS = PACKAGE.stream_method(
    "recipes.steps",
    (
        "record{total:u32,failing:option<u32>}",
        "stream<u32>",
        "variant{empty,failed-step(u32)}",
        "u32",
    ),
    (
        12,
        (("total", 0, layout.U32), ("failing", 4, layout.option(layout.U32, 8, 4, 4))),
    ),
    layout.U32,
    None,
    _layout.JOB_ERROR,
)
