# Written by `thalweg gen` from thalweg:recipes@0.1.0. Do not edit.
"""Situations that most services meet: a long call with progress, a value that many clients watch,
a bounded worker pool, and a stream that ends with an error.
"""

from .aio import AsyncJob, AsyncRecipes
from .client import Job, Recipes
from .types import JobError, JobErrorEmpty, JobErrorFailedStep, Progress, Setting
from .views import ProgressView, SettingView

__all__ = [
    "AsyncJob",
    "AsyncRecipes",
    "Job",
    "JobError",
    "JobErrorEmpty",
    "JobErrorFailedStep",
    "Progress",
    "ProgressView",
    "Recipes",
    "Setting",
    "SettingView",
]
