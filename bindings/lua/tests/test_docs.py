"""The programs of docs/lua.md print what their comments say."""

import re
from pathlib import Path

import nginx
import pytest

TEXT = (nginx.ROOT / "docs/lua.md").read_text()
BLOCKS = re.findall(r"^```nginx\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def expected(block: str) -> str:
    """The lines of the comment that begins with `prints:`."""
    comment = block[block.index("-- prints:") :].replace("prints: ", "", 1)
    return "".join(f"{line}\n" for line in re.findall(r"-- (.*)", comment))


@pytest.mark.parametrize("mode", nginx.MODES)
def test_programs_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nginx.LIBRARIES))
    locations = [block for block in BLOCKS if block.startswith("location ")]
    [init] = [block for block in BLOCKS if block.startswith("init_worker")]
    opened = (
        'conformance = assert(require("conformance").open("libthalweg_conformance.so"))'
    )
    init = init.replace("{\n", f"{{\n{opened}\n", 1)
    assert len(locations) >= 7
    with nginx.started(tmp_path, init, "\n".join(locations), mode=mode) as running:
        for block in locations:
            path = block.split()[1]
            text = running.get(path).text
            assert text == expected(block), path
    assert not running.alerts()
