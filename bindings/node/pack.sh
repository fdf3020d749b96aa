#!/usr/bin/env bash
# Pack the Node package, with the native part of this platform, into FOLDER/thalweg-VERSION.tgz.
#
#   bindings/node/pack.sh FOLDER
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")"

./build.sh
# npm leaves out symbolic links, and the licences are two.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -rL lib prebuilds package.json README.md LICENSE-APACHE LICENSE-MIT "$stage"
(cd "$stage" && npm pack --silent --pack-destination "$folder" >/dev/null)
