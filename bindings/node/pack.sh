#!/usr/bin/env bash
# Pack the Node package, with the native part of this platform and libthalweg.so, which opens guests, into
# FOLDER/thalweg-VERSION.tgz. LIBTHALWEG is the path of another libthalweg.so than that of a release build.
#
#   bindings/node/pack.sh FOLDER [LIBTHALWEG]
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
core=${2:+$(realpath "$2")}
cd "$(dirname "$0")"

if [ -z "$core" ]; then
  target=${CARGO_TARGET_DIR:-$(realpath ../../target)}
  CARGO_TARGET_DIR=$target cargo build --locked --quiet --release -p thalweg-shared
  core=$target/release/libthalweg_shared.so
fi
./build.sh
# npm leaves out symbolic links, and the licences are two.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -rL lib prebuilds package.json README.md LICENSE-APACHE LICENSE-MIT "$stage"
strip -o "$(dirname "$(ls -d "$stage"/prebuilds/*/thalweg.node)")/libthalweg.so" "$core"
(cd "$stage" && npm pack --silent --pack-destination "$folder" >/dev/null)
