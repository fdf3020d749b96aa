"""Writes the reports of the scenarios: see `conformance/README.md`."""

import json
import os
import platform
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

LANGUAGES = {"sync": "Python", "asyncio": "Python asyncio"}

verdicts: dict[str, list[dict[str, str]]] = {face: [] for face in LANGUAGES}


def pytest_configure(config: pytest.Config) -> None:
    # Many scenarios fail with a guest, as expected. The reasons are not formatted: that takes time, and
    # Python 3.11 may fail to parse a source again while it does so.
    if "CONFORMANCE_SERVICE" in os.environ:
        config.option.tbstyle = "no"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    callspec: Any = getattr(item, "callspec", None)
    scenario = callspec and callspec.params.get("scenario")
    # A failure before or after the call also counts.
    if scenario and (call.when == "call" or report.outcome == "failed"):
        face = next(face for face in LANGUAGES if face in callspec._idlist)
        verdict = "ok" if report.outcome == "passed" else report.outcome
        verdicts[face].append({"name": scenario["name"], "verdict": verdict})
    return report


def pytest_sessionfinish() -> None:
    libraries = os.environ.get("THALWEG_TEST_LIBRARIES")
    if not libraries:
        return
    reports = os.environ.get("CONFORMANCE_REPORTS")
    folder = Path(reports or Path(libraries).parent / "conformance")
    folder.mkdir(exist_ok=True)
    for face, language in LANGUAGES.items():
        if verdicts[face]:
            report = {
                "language": language,
                "version": platform.python_version(),
                "scenarios": verdicts[face],
            }
            path = folder / f"{language.lower().replace(' ', '-')}.json"
            path.write_text(json.dumps(report))
