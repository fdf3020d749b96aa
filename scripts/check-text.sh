#!/usr/bin/env bash
# Rules for the text of committed files that no language's linter checks.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
complain() {
  printf 'check-text: %s\n' "$1" >&2
  failed=1
}

# 1. No path of the machine that a file was created on: neither this clone's, nor a home directory,
#    nor a scratch folder.
here=$(pwd)
paths='(^|[^A-Za-z0-9_.~/-])/(work|root|home|Users|tmp)/[A-Za-z0-9_.-]'
if git grep -nIE "$paths" -- . ':!LICENSE-*' ':!scripts/check-text.sh'; then
  complain "a committed file names a path of a machine (above)"
fi
if git grep -nIF -e "$here/" -e "${HOME:-/nonexistent}/." -- .; then
  complain "a committed file names this machine's paths (above)"
fi

# 2. Clippy reads an exported macro only where its own crate expands it, so `unsafe` inside macro_rules! is
#    checked here: SAFETY is on the same line or in the six lines above.
while IFS= read -r -d '' file; do
  [ -f "$file" ] || continue
  awk -v file="$file" '
    /macro_rules!/ { inside = 1; match($0, /^ */); indent = RLENGTH; safety = -10 }
    inside {
      if ($0 ~ /SAFETY:/) safety = NR
      code = $0; sub(/\/\/.*/, "", code)
      if (code ~ /unsafe (\{|impl)/ && NR - safety > 6) {
        printf "%s:%d: unsafe in a macro without SAFETY\n", file, NR; bad = 1
      }
      match($0, /^ */)
      if ($0 ~ /^ *\}/ && RLENGTH == indent) inside = 0
    }
    END { exit bad }' "$file" >&2 || failed=1
done < <(git ls-files -z -- '*.rs')

# 3. That lint is not switched off.
if git grep -nE 'allow\(.*(undocumented_unsafe_blocks|missing_safety_doc)' -- '*.rs'; then
  complain "the lints on unsafe may not be allowed away (above)"
fi

# 4. Links between pages lead to files that exist.
while IFS=: read -r page link; do
  target=$(dirname "$page")/${link%%#*}
  if ! [ -e "$target" ]; then complain "$page links to $link, which does not exist"; fi
done < <(git grep -oE '\]\([^)#:]+(#[^)]*)?\)' -- '*.md' | sed -E 's/\]\(([^)]*)\)$/\1/')

exit "$failed"
