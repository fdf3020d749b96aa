#!/usr/bin/env bash
# Check what changed: formatters, linters, unit tests and text rules, only where files changed.
#
#   scripts/check.sh [BASE]
#
# BASE is the commit to compare with. The default is HEAD if the working tree has changes, and
# the commit before HEAD otherwise. `make test` runs everything.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1:-}
if [ -z "$base" ]; then
  if [ -n "$(git status --porcelain)" ]; then base=HEAD; else base=HEAD~1; fi
fi
git rev-parse --verify --quiet "$base^{commit}" >/dev/null || {
  printf 'check.sh: %s is not a commit\n' "$base" >&2
  exit 2
}

mapfile -t changed < <({
  git diff --name-only --diff-filter=d "$base" --
  git ls-files --others --exclude-standard
} | sort -u)
if ((${#changed[@]} == 0)); then
  echo "check: nothing changed since $base"
  exit 0
fi
printf 'check: %d files changed since %s\n' "${#changed[@]}" "$base"

# matching PATTERN...: the changed files that match one of the patterns; generated and golden files
# are left out.
matching() {
  local file pattern
  for file in "${changed[@]}"; do
    case $file in */generated/* | */golden/*) continue ;; esac
    for pattern in "$@"; do
      # shellcheck disable=SC2053 # the right side is a pattern
      if [[ $file == $pattern ]]; then printf '%s\n' "$file"; fi
    done
  done
}

# The workspace packages that contain changed files, found by the nearest Cargo.toml above each
# file.
mapfile -t packages < <(printf '%s\n' "${changed[@]}" | python3 -c '
import json, os, subprocess, sys
arguments = ["cargo", "metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]
metadata = json.loads(subprocess.check_output(arguments))
root = metadata["workspace_root"]
folders = {os.path.relpath(os.path.dirname(p["manifest_path"]), root): p["name"] for p in metadata["packages"]}
names = set()
for path in sys.stdin.read().split("\n"):
    if not path.endswith((".rs", ".toml", ".wit")):
        continue
    folder = os.path.dirname(path)
    while folder and folder not in folders:
        folder = os.path.dirname(folder)
    if folder:
        names.add(folders[folder])
print("\n".join(sorted(names)))')

failed=()
step() {
  local name=$1
  shift
  printf '\n=== %s\n' "$name"
  "$@" || failed+=("$name")
}

step "rustfmt" cargo fmt --all -- --check
select=()
for package in "${packages[@]}"; do
  if [ -n "$package" ]; then select+=(-p "$package"); fi
done
if ((${#select[@]})); then
  step "clippy" cargo clippy --locked "${select[@]}" --all-targets -- -D warnings
  step "unit tests" cargo test --locked "${select[@]}" --lib --bins --no-fail-fast
fi

mapfile -t c_files < <(matching '*.c' '*.h' '*.cpp' '*.hpp')
if ((${#c_files[@]})); then step "clang-format" clang-format --dry-run -Werror "${c_files[@]}"; fi
mapfile -t python_files < <(matching '*.py' '*.pyi')
if ((${#python_files[@]})); then
  step "ruff format" ruff format --check "${python_files[@]}"
  step "ruff" ruff check "${python_files[@]}"
fi
mapfile -t shell_files < <(matching '*.sh' '.ci/run')
if ((${#shell_files[@]})); then step "shellcheck" shellcheck "${shell_files[@]}"; fi
step "text" scripts/check-text.sh

if ((${#failed[@]})); then
  printf '\ncheck: FAILED: %s\n' "$(IFS=,; echo "${failed[*]}")" >&2
  exit 1
fi
printf '\ncheck: passed in %d s\n' "$SECONDS"
