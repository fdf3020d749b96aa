#!/usr/bin/env python3
"""Build a cargo registry in a local folder from the packaged crates of this workspace.

    scripts/registry.py [FOLDER]      default: $CARGO_TARGET_DIR/registry

FOLDER then contains `KEY/index`, a registry index in a git repository, `KEY/crates`, the packaged
crates, and `env`, a file for the shell:

    . target/registry/env

`env` tells cargo where the registry `thalweg-local` is, and pip where the wheels of `make wheel`
are. Crates of other authors still come from crates.io. The key is a hash of the crates: cargo
caches what a registry contains by the address of its index, so other contents need another address.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CRATES_IO = "https://github.com/rust-lang/crates.io-index"
KINDS = {
    "dependencies": "normal",
    "build-dependencies": "build",
    "dev-dependencies": "dev",
}


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """The standard output of a command."""
    env = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=folder, env=env, check=True, stdout=subprocess.PIPE
    )
    return done.stdout.decode()


def published() -> list[str]:
    """The crates of the workspace that may be published."""
    text = run("cargo", "metadata", "--no-deps", "--locked", "--format-version", "1")
    packages = json.loads(text)["packages"]
    return sorted(p["name"] for p in packages if p["publish"] is None)


def package(names: list[str], target: Path) -> list[Path]:
    """Packages the crates as `cargo publish` would, and returns the files."""
    folder = target / "package"
    shutil.rmtree(folder, ignore_errors=True)
    arguments = [
        "--locked",
        "--no-verify",
        "--allow-dirty",
        "--quiet",
        "--target-dir",
        str(target),
    ]
    select = [word for name in names for word in ("-p", name)]
    run("cargo", "package", *arguments, *select)
    return sorted(folder.glob("*.crate"))


def manifest(crate: Path) -> dict[str, Any]:
    """The `Cargo.toml` in a packaged crate, in which cargo has resolved everything inherited."""
    with tarfile.open(crate) as archive:
        member = archive.extractfile(f"{crate.stem}/Cargo.toml")
        assert member is not None
        return tomllib.load(io.BytesIO(member.read()))


def dependencies(
    table: dict[str, Any], ours: set[str], target: str | None
) -> list[dict[str, Any]]:
    """The dependencies in a table of a manifest, as a registry index lists them."""
    found = []
    for section, kind in KINDS.items():
        for name, item in table.get(section, {}).items():
            renamed = item.get("package")
            found.append(
                {
                    "name": name,
                    "req": item["version"],
                    "features": item.get("features", []),
                    "optional": item.get("optional", False),
                    "default_features": item.get("default-features", True),
                    "target": target,
                    "kind": kind,
                    # Without an address the dependency is in this registry.
                    "registry": None if (renamed or name) in ours else CRATES_IO,
                    "package": renamed,
                }
            )
    return found


def entry(crate: Path, ours: set[str]) -> dict[str, Any]:
    """The line of a crate in the index."""
    toml = manifest(crate)
    deps = dependencies(toml, ours, None)
    for target, table in toml.get("target", {}).items():
        deps += dependencies(table, ours, target)
    return {
        "name": toml["package"]["name"],
        "vers": toml["package"]["version"],
        "deps": deps,
        "cksum": hashlib.sha256(crate.read_bytes()).hexdigest(),
        "features": toml.get("features", {}),
        "yanked": False,
        "links": toml["package"].get("links"),
        "rust_version": toml["package"].get("rust-version"),
        "v": 2,
    }


def place(name: str) -> Path:
    """Where the index has a crate. The names of all crates here are longer than three letters."""
    return Path(name[:2], name[2:4], name)


def localize(crate: Path, ours: set[str], index: str) -> bytes:
    """A packaged crate whose dependencies on our crates are in the registry at `index`.

    `cargo install` reads the dependencies in the `Cargo.toml` of a crate, not those in the index,
    and one without a registry is on crates.io. The `Cargo.lock`, which says the same, is left out.
    """
    section = re.compile(
        r"^\[(?:.+\.)?(?:dev-|build-)?dependencies\.(.+)\]$", re.MULTILINE
    )

    def add(found: re.Match[str]) -> str:
        if found[1] not in ours:
            return found[0]
        return f"{found[0]}\nregistry-index = {json.dumps(index)}"

    out = io.BytesIO()
    with tarfile.open(crate) as old, tarfile.open(fileobj=out, mode="w") as new:
        for member in old:
            path = member.name.removeprefix(f"{crate.stem}/")
            if path == "Cargo.lock":
                continue
            file = old.extractfile(member)
            assert file is not None
            data = file.read()
            if path == "Cargo.toml":
                data = section.sub(add, data.decode()).encode()
                member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


def build(folder: Path, crates: list[Path]) -> Path:
    """Writes the registry, if it is not there yet, and returns its folder."""
    names = {str(manifest(crate)["package"]["name"]) for crate in crates}
    # The address of the index is in the crates, so the key is that of the crates without it.
    key = hashlib.sha256(Path(__file__).read_bytes())
    for crate in crates:
        key.update(hashlib.sha256(crate.read_bytes()).digest())
    registry = folder / key.hexdigest()[:12]
    for old in folder.glob("*"):
        if old.is_dir() and old != registry:
            shutil.rmtree(old)
    index = registry / "index"
    if (index / ".git").is_dir():
        return registry
    shutil.rmtree(registry, ignore_errors=True)
    (registry / "crates").mkdir(parents=True)
    for packaged in crates:
        crate = registry / "crates" / packaged.name
        crate.write_bytes(localize(packaged, names, index.as_uri()))
        item = entry(crate, names)
        line = index / place(item["name"])
        line.parent.mkdir(parents=True, exist_ok=True)
        line.write_text(json.dumps(item) + "\n")
    download = (registry / "crates").as_uri() + "/{crate}-{version}.crate"
    (index / "config.json").write_text(json.dumps({"dl": download}) + "\n")
    identity = {
        f"GIT_{who}_{what}": "thalweg"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    run("git", "init", "--quiet", "--initial-branch=main", folder=index)
    run("git", "add", "--all", folder=index)
    commit = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", "index"]
    run("git", *commit, folder=index, **identity)
    return registry


def main() -> None:
    """Builds the registry and says how to use it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
    folder = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else target / "registry"
    registry = build(folder, package(published(), target))
    wheels = shlex.quote(str(target / "wheels"))
    (folder / "env").write_text(
        "# Use the crates and wheels of this checkout: `. FILE`. Without it, cargo and pip use crates.io and PyPI.\n"
        f"export CARGO_REGISTRIES_THALWEG_LOCAL_INDEX={shlex.quote((registry / 'index').as_uri())}\n"
        f"export PIP_FIND_LINKS={wheels} PIP_NO_INDEX=1\n"
    )
    for crate in sorted((registry / "crates").iterdir()):
        print(f"{crate.name:36} {crate.stat().st_size / 1024:7.1f} KiB")
    print(f"use it with: . {folder / 'env'}")


if __name__ == "__main__":
    main()
