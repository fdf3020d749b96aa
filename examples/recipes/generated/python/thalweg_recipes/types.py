# Written by `thalweg gen` from thalweg:recipes@0.1.0. Do not edit.
"""The types of thalweg:recipes@0.1.0."""

from __future__ import annotations

from dataclasses import dataclass

import thalweg


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is."""

    done: int
    """Finished steps."""
    total: int
    """All steps."""


class JobError(thalweg.ServiceError):
    """Why a job failed."""


class JobErrorEmpty(JobError):
    """The job has no steps."""

    payload: None


class JobErrorFailedStep(JobError):
    """This step failed. The first step is 1."""

    payload: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A named setting."""

    name: str
    value: str
