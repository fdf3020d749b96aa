# Written by `thalweg gen` from thalweg:recipes@0.1.0. Do not edit.
"""The client of thalweg:recipes@0.1.0 for sync code."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Progress, Setting
from .views import ProgressView, SettingView


class Job(thalweg.Resource):
    """A long job that consists of steps."""

    __slots__ = ()

    def run(self, *, timeout: float | None = None) -> int:
        """Runs all steps and returns their number. Stops early if the call is cancelled.

        Raises `JobError`.
        """
        return _methods.JOB_RUN.call(self, timeout, self)

    def progress(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Progress, ProgressView]:
        """The progress of `run` from now on. A slow reader receives only the newest record.

        The stream holds one unread record; a newer record replaces it, which is counted.
        """
        return _methods.JOB_PROGRESS.call(self, timeout, self)


class Recipes(thalweg.Client):
    """Situations that most services meet: a long call with progress, a value that many clients watch,
    a bounded worker pool, and a stream that ends with an error.

    A client has an instance of the service of its own. Every call takes `timeout`, in
    seconds, and raises `thalweg.TimedOut` when it is over.
    """

    __slots__ = ()

    @classmethod
    def open(cls, path: str | PathLike[str] | None = None) -> Self:
        """Opens a library, by default the one in this package, and makes a client of it.

        Raises `OSError` where it cannot be loaded and `thalweg.VersionMismatch` where it does
        not fit this package.
        """
        return cls._open(_methods.PACKAGE, thalweg.library_path(path, __file__))

    def job(self, steps: int, step_ms: int, *, timeout: float | None = None) -> Job:
        """Creates a job whose steps take `step-ms` milliseconds each.

        Raises `JobError`.
        """
        return _methods.JOB.make(Job, self, timeout, steps, step_ms)

    def set(self, setting: Setting, *, timeout: float | None = None) -> None:
        """Changes a setting. Every client that watches receives the change."""
        return _methods.SET.call(self, timeout, setting)

    def watch(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Setting, SettingView]:
        """All settings, then each change. A slow reader receives only the newest value of a setting.

        The stream holds one unread record for each of up to 64 values of `name`; a newer record replaces it, which is counted.
        """
        return _methods.WATCH.call(self, timeout)

    def digest(self, text: str, *, timeout: float | None = None) -> int:
        """A digest of the text, computed by one of two workers."""
        return _methods.DIGEST.call(self, timeout, text)

    def steps(
        self,
        total: int,
        failing: int | None = None,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[int, int]:
        """The numbers of the steps. If `failing` is one of them, the stream ends there with an error.

        The stream holds 64 unread records; when it is full, the writer waits.

        Raises `JobError`.
        """
        return _methods.STEPS.call(self, timeout, total, failing)
