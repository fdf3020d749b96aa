#!/usr/bin/env bash
# Installs the wheel with libthalweg.so into an empty environment, and opens a guest with it: neither
# THALWEG_LIBRARY nor the loader's path names the library. test.sh has built it and the guest.
set -euo pipefail
cd "$(dirname "$0")/../../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bindings/python/wheel.sh "$folder/wheels" "$target/debug/libthalweg.so"
.venv/bin/python -m venv "$folder/user"
"$folder/user/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-index "$folder"/wheels/*.whl
cp -r "$target/guests/python/thalweg_probe" "$folder"
cat >"$folder/open.py" <<'END'
"""Opens the guest at an address, after the library at a path if there is one."""

import ctypes
import sys

from thalweg_probe import Probe

address, *loaded = sys.argv[1:]
libraries = [ctypes.CDLL(path) for path in loaded]
with Probe.open(address) as probe:
    assert [probe.add(3), probe.add(4)] == [3, 7]
with open("/proc/self/maps") as maps:
    paths = {line.split()[-1] for line in maps if "libthalweg" in line}
print(*paths)
END
open() {
  (cd "$folder" && env -u THALWEG_LIBRARY -u LD_LIBRARY_PATH user/bin/python open.py \
    "thread:$target/guests/libguest_probe.so" "$@")
}
# The process has one core: that of the package, or the one that it has loaded before.
[ "$(open)" = "$(echo "$folder"/user/lib/python*/site-packages/thalweg/libthalweg.so)" ]
[ "$(open "$target/debug/libthalweg.so")" = "$(realpath "$target/debug/libthalweg.so")" ]
echo "install: the wheel opens a guest"
