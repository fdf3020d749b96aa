#!/usr/bin/env bash
# Builds the wheel of the package `thalweg`, without libthalweg.so (wheel.sh), and installs it into .venv, if anything
# that it is made of has changed.
# .venv has maturin from scripts/setup.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
wheels=$target/python
stamp=$target/thalweg-wheel.stamp

# The extension is made of its own sources, the table's mirror and how a text is hashed; nothing else of the core is in it.
sources() {
  find bindings/python/src bindings/python/python -type f ! -name '*.so' ! -name '*.pyc' -print0 | sort -z
  printf '%s\0' bindings/python/Cargo.toml bindings/python/pyproject.toml crates/capi/src/abi.rs crates/wire/src/shape.rs rust-toolchain.toml
}
key=$({
  sources | xargs -0 sha256sum
  # A venv that was made anew has lost the package.
  .venv/bin/python -c 'import sys; print(sys.version, sys.prefix)'
  stat -c %Y .venv/pyvenv.cfg
} | sha256sum)

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ]; then exit 0; fi

rm -rf "$wheels"
.venv/bin/maturin build --quiet --release --locked --manifest-path bindings/python/Cargo.toml \
  --interpreter .venv/bin/python --out "$wheels"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-index --no-deps \
  --force-reinstall "$wheels"/thalweg-*.whl
printf '%s\n' "$key" >"$stamp"
