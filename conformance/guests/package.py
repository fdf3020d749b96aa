#!/usr/bin/env python3
"""Write the package of a guest: the conformance package without the functions that the guest cannot have.

    package.py GUEST FOLDER

GUEST is a `folder` of `guests.toml`, which lists these functions with the reason. The generators would refuse the whole package
because of them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def left_out(guest: str) -> list[str]:
    """The functions and resources that this guest does not have."""
    entries = tomllib.loads((HERE / "guests.toml").read_text())
    languages = {each["folder"]: each["language"] for each in entries["guest"]}
    language = languages[guest]
    names: list[str] = []
    for entry in entries["unsupported"]:
        if language in entry.get("guests", [language]):
            names += entry.get("functions", [])
    return names


def without_item(wit: str, name: str) -> str:
    """The text without a function or a resource, and its documentation."""
    docs = r"(?:^ *///.*\n)*"
    function = rf"{docs}^ *{name}: (?:async |static )*func\([^;]*;\n+"
    resource = rf"{docs}^    resource {name} \{{\n(?:(?!    \}}).*\n)*    \}}\n+"
    rest, count = re.subn(f"{function}|{resource}", "", wit, flags=re.M)
    if count != 1:
        sys.exit(f"guests.toml: the WIT has {count} items called {name}")
    return rest


def without_policy(policy: str, name: str) -> str:
    """The text without the options of a function or a resource."""
    table = rf"^\[conformance\.(?:[a-z-]+\.)?{name}\]\n(?:.+\n)*\n*"
    return re.sub(table, "", policy, flags=re.M)


def main() -> None:
    guest, folder = sys.argv[1:]
    wit = (HERE.parent / "wit/conformance.wit").read_text()
    policy = (HERE.parent / "wit/conformance.thalweg.toml").read_text()
    names = left_out(guest)
    # Without host imports, a guest has none of the functions that call the host.
    if "ask" in names:
        wit = re.sub(
            r"^(///.*\n)*interface oracle \{\n(?: .*\n|\n)*\}\n+", "", wit, flags=re.M
        )
        wit = re.sub(r"^    import oracle;\n", "", wit, flags=re.M)
    for name in names:
        wit = without_item(wit, name)
        policy = without_policy(policy, name)
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / "conformance.wit").write_text(wit)
    (Path(folder) / "conformance.thalweg.toml").write_text(policy)


if __name__ == "__main__":
    main()
