#!/usr/bin/env bash
# Compile the libraries of this folder, which are written to the README of lua-resty-ffi, into the folder
# OUT [target/lua/resty_ffi]: libffi_c_echo.so, libffi_hostile.so, and with Go libffi_go_echo.so.
#
#   bindings/lua/tests/resty_ffi/build.sh [OUT]
set -euo pipefail
cd "$(dirname "$0")/../../../.."

sources=$PWD/bindings/lua/tests/resty_ffi
out=${1:-${CARGO_TARGET_DIR:-$PWD/target}/lua/resty_ffi}
mkdir -p "$out"
out=$(realpath "$out")
for name in c_echo:echo hostile:hostile; do
  "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -pthread "$sources/${name#*:}.c" -o "$out/libffi_${name%:*}.so"
done
if command -v go >/dev/null; then
  go build -buildmode=c-shared -o "$out/libffi_go_echo.so" "$sources/echo.go"
fi
