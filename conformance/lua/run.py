"""Runs the conformance scenarios and the malformed messages in nginx, in both modes.

It writes a report for each mode into a folder: run.py FOLDER. The address in CONFORMANCE_SERVICE is used
instead of the service in Rust.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import nginx

LANGUAGES = {"A": "Lua A", "B": "Lua B"}


def run(mode: str, reports: Path) -> bool:
    """Runs the scenarios in one mode. Returns whether the malformed messages were refused."""
    with tempfile.TemporaryDirectory() as folder:
        conformance = nginx.ROOT / "conformance"
        library = f"{nginx.LIBRARIES}/libthalweg_conformance.so"
        service = os.environ.get("CONFORMANCE_SERVICE", library)
        (Path(folder) / "settings.lua").write_text(
            f'return {{ library = "{service}", '
            f'scenarios = "{conformance}/scenarios.json", hostile = "{conformance}/hostile.json" }}'
        )
        server = "location / { content_by_lua_block { require('runner')[ngx.var.arg_run]() } }"
        core = "env THALWEG_LIBRARY;"
        with nginx.started(Path(folder), "", server, main=core, mode=mode) as running:
            lines = running.get("/?run=scenarios").text.splitlines()
            hostile = running.get("/?run=hostile").text
            version = running.get("/?run=version").text
        alerts = running.alerts()
    scenarios = []
    for line in lines:
        verdict, _, name = line.partition(" ")
        if verdict:
            scenarios.append({"name": name, "verdict": verdict})
        else:
            print(f"{scenarios[-1]['name']}: {line.strip()}", file=sys.stderr)
    report = {"language": LANGUAGES[mode], "version": version, "scenarios": scenarios}
    (reports / f"lua-{mode.lower()}.json").write_text(json.dumps(report))
    failures = sum(1 for scenario in scenarios if scenario["verdict"] != "ok")
    print(f"conformance, mode {mode}: {len(scenarios)} scenarios, {failures} failures")
    print(f"conformance, mode {mode}: {hostile.strip()}")
    print("\n".join(alerts), end="", file=sys.stderr)
    return hostile.startswith("ok") and not alerts


if __name__ == "__main__":
    reports = Path(sys.argv[1])
    sys.exit(not all([run(mode, reports) for mode in nginx.MODES]))
