#!/usr/bin/env bash
# Run every command of docs/getting-started.md in an empty folder, with a clone of this repository's
# last commit: install, first service, change, wheel in a clean environment, tarball.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -n "$(git status --porcelain)" ]; then echo "prove-package: uncommitted changes are not tested" >&2; fi

# Only what an installation of the wheel needs.
mkdir "$folder/bin" "$folder/work"
for program in bash env rm python3; do ln -s "$(command -v "$program")" "$folder/bin/"; done
ln -sf "$(python3 -c 'import sys; print(sys.executable)')" "$folder/bin/python3"

unset CARGO_TARGET_DIR MAKEFLAGS MAKELEVEL
# The URL on the page leads to this repository. The command is installed into a folder of its own.
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0="url.$root.insteadOf" \
  GIT_CONFIG_VALUE_0=https://github.com/thalweg/thalweg \
  GIT_CONFIG_KEY_1=safe.directory GIT_CONFIG_VALUE_1='*'
export CARGO_INSTALL_ROOT=$folder/installed PATH=$folder/installed/bin:$PATH NO_COMPILER=$folder/bin

scripts/getting-started.py >"$folder/commands.sh"
cd "$folder/work"
bash "$folder/commands.sh"
echo "prove-package: passed in $SECONDS s"
