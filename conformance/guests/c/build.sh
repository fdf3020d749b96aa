#!/usr/bin/env bash
# Builds the conformance service in C: build.sh INTERFACE LIBRARY.
set -euo pipefail
cd "$(dirname "$0")/../../.."

generated=$(dirname "$1")
"${CARGO_TARGET_DIR:-$PWD/target}/debug/thalweg" gen --guest c --out "$generated" "$1" >/dev/null
"${CC:-cc}" -std=c11 -D_XOPEN_SOURCE=700 -O1 -g -Wall -Wextra -Werror -Wno-unused-function -shared -fPIC \
  -fvisibility=hidden -Ibindings/c/include "-I$generated/guest-c" -Iconformance/guests/c \
  conformance/guests/c/conformance.c -o "$2" -pthread
