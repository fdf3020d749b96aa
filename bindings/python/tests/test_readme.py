"""The program in the README runs."""

import re
from pathlib import Path

import pytest


def test_readme_program_runs(
    search_library: str, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = Path(__file__).parents[1] / "README.md"
    found = re.search(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert found is not None
    program = found[1].replace("libthalweg_search.so", search_library)
    program = program.replace('"src"', repr(str(tree))).replace('"unsafe"', '"needle"')
    exec(program, {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "0"
    assert sum(line.startswith(str(tree)) for line in printed) == 7
    assert "unclosed" in printed[-1]
