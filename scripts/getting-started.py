#!/usr/bin/env python3
"""Print the commands of docs/getting-started.md as one shell script, in their order.

A comment above a block says what the script does with it:

    <!-- insert: FILE: LINE -->   insert the block into FILE after LINE
    <!-- write: FILE -->          make the block the contents of FILE
    <!-- no compiler -->          run it with a PATH that has no compiler

The script expects NO_COMPILER, a PATH without compilers.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "getting-started.md"
BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?```([a-z,]*)\n(.*?)```\n", re.DOTALL)
INSERT = r"""
import pathlib, sys
path, line, block = pathlib.Path(sys.argv[1]), sys.argv[2] + "\n", sys.argv[3]
text = path.read_text()
assert text.count(line) == 1, f"{path} does not have the line {line!r} once"
path.write_text(text.replace(line, line + block + "\n"))
"""


def command(comment: str, language: str, block: str) -> str:
    """The command for one block."""
    if comment.startswith("insert: "):
        file, line = comment.removeprefix("insert: ").split(": ", 1)
        return shlex.join(["python3", "-c", INSERT, file, line, block]) + "\n"
    if comment.startswith("write: "):
        return f"printf %s {shlex.quote(block)} >{shlex.quote(comment.removeprefix('write: '))}\n"
    if language != "sh":
        raise SystemExit(f"{PAGE.name}: a block of {language} without an instruction")
    step = f"echo '=== at '$SECONDS' s'\nset -x\n{block}{{ set +x; }} 2>/dev/null\n"
    if comment == "no compiler":
        return f"with_compiler=$PATH PATH=$NO_COMPILER\n{step}PATH=$with_compiler\n"
    return step


def main() -> None:
    """Prints the script."""
    print("set -euo pipefail")
    for comment, language, block in BLOCK.findall(PAGE.read_text()):
        print(command(comment, language, block), end="")


if __name__ == "__main__":
    main()
