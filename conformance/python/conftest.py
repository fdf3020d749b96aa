"""The hooks that leave the reports. They stand apart, where the type checker looks: it takes one `conftest` only."""

from reports import pytest_runtest_makereport, pytest_sessionfinish

__all__ = ["pytest_runtest_makereport", "pytest_sessionfinish"]
