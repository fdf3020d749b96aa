#!/usr/bin/env bash
# Write the nimble package `thalweg` with libthalweg.so, which opens guests, into FOLDER/thalweg. LIBTHALWEG is the path of
# another libthalweg.so than that of a release build.
#
#   bindings/nim/pack.sh FOLDER [LIBTHALWEG]
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)/thalweg
core=${2:+$(realpath "$2")}
cd "$(dirname "$0")"

if [ -z "$core" ]; then
  target=${CARGO_TARGET_DIR:-$(realpath ../../target)}
  CARGO_TARGET_DIR=$target cargo build --locked --quiet --release -p thalweg-shared
  core=$target/release/libthalweg_shared.so
fi
rm -rf "$folder"
mkdir "$folder"
cp -rL src thalweg.nimble README.md LICENSE-APACHE LICENSE-MIT "$folder"
strip -o "$folder/src/thalweg/libthalweg.so" "$core"
