"""Imports the hooks that write the reports.

mypy accepts only one `conftest`, so the hooks are in `reports`.
"""

from reports import (
    pytest_configure,
    pytest_runtest_makereport,
    pytest_sessionfinish,
)

__all__ = ["pytest_configure", "pytest_runtest_makereport", "pytest_sessionfinish"]
