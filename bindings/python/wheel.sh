#!/usr/bin/env bash
# Build the wheel of the package `thalweg`, with libthalweg.so, which opens guests, into FOLDER. LIBTHALWEG is the path
# of another libthalweg.so than that of a release build.
#
#   bindings/python/wheel.sh FOLDER [LIBTHALWEG]
#
# .venv has maturin from scripts/setup.sh. The wheel that build.sh installs has no libthalweg.so, so that a change of
# the core does not rebuild it.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
core=${2:+$(realpath "$2")}
cd "$(dirname "$0")/../.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
if [ -z "$core" ]; then
  cargo build --locked --quiet --release -p thalweg-shared
  core=$CARGO_TARGET_DIR/release/libthalweg_shared.so
fi
packaged=bindings/python/python/thalweg/libthalweg.so
trap 'rm -f "$packaged"' EXIT
strip -o "$packaged" "$core"
rm -f "$folder"/thalweg-*.whl
.venv/bin/maturin build --quiet --release --locked --manifest-path bindings/python/Cargo.toml \
  --interpreter .venv/bin/python --out "$folder"

# maturin chooses the tag for the extension alone: libthalweg.so must not need a newer glibc.
wheel=$(basename "$folder"/thalweg-*.whl)
tag=$(sed -n 's/.*manylinux_\([0-9]*_[0-9]*\)_.*/\1/p' <<<"$wheel")
needs=$(objdump -T "$packaged" | sed -n 's/.*(GLIBC_\([0-9]*\)\.\([0-9]*\).*/\1_\2/p' | sort -V | tail -n 1)
if [ -n "$tag" ] && [ "$(printf '%s\n' "$tag" "$needs" | sort -V | tail -n 1)" != "$tag" ]; then
  echo "$wheel: libthalweg.so needs glibc ${needs/_/.}" >&2
  exit 1
fi
