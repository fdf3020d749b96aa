#!/usr/bin/env bash
# Builds the conformance service of a guest: build.sh FOLDER, for example `c`. It is then
# $CARGO_TARGET_DIR/conformance-guests/FOLDER.so.
#
# FOLDER/build.sh INTERFACE LIBRARY builds the guest itself from its package: the folder with the WIT,
# which package.py has written. whole.c explains the library that programs open.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
folder=$1
build=$target/conformance-guests/$folder
mkdir -p "$build"
scripts/build-services.sh
scripts/generate.sh
python3 conformance/guests/package.py "$folder" "$build/interface"
"conformance/guests/$folder/build.sh" "$build/interface" "$build/libguest.so"
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -Wno-unused-function -shared -fPIC \
  -fvisibility=hidden -Ibindings/c/include -Iconformance/generated/c \
  "-DCONFORMANCE_GUEST=\"$build/libguest.so\"" conformance/guests/whole.c -o "$build.so.new" -ldl
mv "$build.so.new" "$build.so"
