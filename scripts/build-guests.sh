#!/usr/bin/env bash
# Build the service in C that the languages' tests open by its address,
# $CARGO_TARGET_DIR/guests/libguest_probe.so, and write the code of its package for each language next to it.
# `build-services.sh` has built libthalweg.so, and `generate.sh` the program that generates code.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/target}
guests=$target/guests
mkdir -p "$guests"
"$target/debug/thalweg" gen --out "$guests" bindings/c/tests/guests/wit --guest c \
  --lang c,cpp,lua,nim,node,python >/dev/null
"${CC:-cc}" -std=c11 -D_XOPEN_SOURCE=700 -O2 -fPIC -shared -fvisibility=hidden -Ibindings/c/include \
  "-I$guests/guest-c" bindings/c/tests/guests/probe.c -o "$guests/libguest_probe.so.new" -pthread
mv "$guests/libguest_probe.so.new" "$guests/libguest_probe.so"
