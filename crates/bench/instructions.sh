#!/usr/bin/env bash
# Instructions per operation of the hot paths, counted by callgrind.
#
#   crates/bench/instructions.sh [PATH...]
#
# Each path runs twice, with different numbers of operations; the difference between the two counts, divided
# by the difference in operations, is what one operation costs, without start and end. All threads count. The program is
# pinned to one processor, because valgrind runs one thread at a time and a waiter that spins would only count its spinning.
set -euo pipefail
cd "$(dirname "$0")/../.."

few=2000
many=12000

command -v valgrind >/dev/null || {
  echo "instructions.sh: valgrind is missing: apt-get install valgrind" >&2
  exit 1
}

# cargo says where the program is; the last one of that name is the bench target's.
program=$(cargo bench --locked -p thalweg-bench --bench hot_paths --no-run --message-format=json |
  sed -n 's/.*"name":"hot_paths".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

count() {
  taskset -c "$(taskset -cp $$ | sed 's/.*[:,-] *//')" \
    valgrind --quiet --tool=callgrind --callgrind-out-file="$scratch/out" "$program" "$1" "$2" 2>"$scratch/log" ||
    {
      cat "$scratch/log" >&2
      exit 1
    }
  awk '/^(summary|totals):/ { total = $2 } END { print total }' "$scratch/out"
}

paths=("$@")
if ((${#paths[@]} == 0)); then paths=(encode_match view_match stream_match call call_async); fi
printf '%-16s %14s\n' path 'Ir/operation'
for path in "${paths[@]}"; do
  low=$(count "$path" "$few")
  high=$(count "$path" "$many")
  printf '%-16s %14s\n' "$path" "$(((high - low) / (many - few)))"
done
