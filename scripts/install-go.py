#!/usr/bin/env python3
"""Install the Go toolchain of scripts/go-toolchain.txt into build/go, from the Go module proxy.

Debian's Go is too old for bindings/go. The proxy has each toolchain as a module, `golang.org/toolchain`, whose zip
archive has no permissions. Each line of the file is the SHA-256 of an archive, and its name.
"""

import hashlib
import os
import platform
import shutil
import sys
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def main() -> None:
    ending = f".linux-{MACHINES.get(platform.machine())}"
    lines = (ROOT / "scripts/go-toolchain.txt").read_text().splitlines()
    entries = [line.split() for line in lines]
    found = [(digest, name) for digest, name in entries if name.endswith(ending)]
    if not found:
        sys.exit(f"no Go toolchain is listed for {platform.machine()}")
    digest, name = found[0]
    proxies = os.environ.get("GOPROXY", "").replace("|", ",").split(",")
    proxy = next(
        (one for one in proxies if one.startswith("http")), "https://proxy.golang.org"
    )
    archive = ROOT / "build/go.zip"
    archive.parent.mkdir(exist_ok=True)
    with (
        urllib.request.urlopen(f"{proxy}/golang.org/toolchain/@v/{name}.zip") as source,
        archive.open("wb") as out,
    ):
        shutil.copyfileobj(source, out)
    with archive.open("rb") as data:
        if hashlib.file_digest(data, "sha256").hexdigest() != digest:
            sys.exit(f"{name}.zip has another SHA-256 than {digest}")
    unpacked = ROOT / "build/go-unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    with zipfile.ZipFile(archive) as files:
        files.extractall(unpacked)
    archive.unlink()
    toolchain = unpacked / f"golang.org/toolchain@{name}"
    for folder in ("bin", "pkg/tool"):
        for file in (toolchain / folder).rglob("*"):
            file.chmod(0o755)
    shutil.rmtree(ROOT / "build/go", ignore_errors=True)
    toolchain.rename(ROOT / "build/go")
    shutil.rmtree(unpacked)


main()
