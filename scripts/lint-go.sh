#!/usr/bin/env bash
# Check the Go code, also that which is generated, with gofmt and go vet.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/generate-go.sh
scripts/generate.sh
target=${CARGO_TARGET_DIR:-$PWD/target}
"$target/debug/thalweg" gen --out "$target/guests" bindings/c/tests/guests/interface --lang c >/dev/null
unformatted=$({
  git ls-files '*.go'
  git ls-files --others --ignored --exclude-standard '*/guest-go/*.go'
} | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'gofmt would change:\n%s\n' "$unformatted" >&2
  exit 1
fi
for module in bindings/go bindings/go/tests examples/echo/guests/go conformance/guests/go crates/bench/guest/go \
  crates/bench/hosts/go; do
  (cd "$module" && CGO_CFLAGS=-I$target/guests/c go vet ./...)
done
