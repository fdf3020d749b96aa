# Written by `thalweg gen` from thalweg:recipes@0.1.0. Do not edit.
"""How the types of thalweg:recipes@0.1.0 lie in messages."""

from thalweg import layout

from .types import JobError, JobErrorEmpty, JobErrorFailedStep, Progress, Setting

PROGRESS = layout.record(
    Progress,
    8,
    4,
    ("done", 0, layout.U32),
    ("total", 4, layout.U32),
)
JOB_ERROR: layout.Kind[JobError] = layout.variant(
    8,
    4,
    1,
    4,
    (JobErrorEmpty, None),
    (JobErrorFailedStep, layout.U32),
)
SETTING = layout.record(
    Setting,
    16,
    4,
    ("name", 0, layout.STRING),
    ("value", 8, layout.STRING),
)
