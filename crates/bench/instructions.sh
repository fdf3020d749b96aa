#!/usr/bin/env bash
# Instructions per operation of the hot paths, counted by callgrind.
#
#   crates/bench/instructions.sh [PATH...]   print them
#   crates/bench/instructions.sh --check     compare all of them with crates/bench/instructions.toml
#   crates/bench/instructions.sh --record    rewrite that file's limits: measured counts plus 2 %
#
# Each path runs twice, with different numbers of operations. The difference between the two counts,
# divided by the difference in operations, is the cost of one operation without start and end. All
# threads count. The program is pinned to one processor, because valgrind runs one thread at a time
# and a waiter that spins would only count its spinning.
#
# The paths c_.., cpp_.. and nim_.. are those of a host in C, C++ or Nim that opens the library of the
# lab's service. The paths guest_.. are those of the host in C with the lab's service in C, guest_nim_.. with
# that in Nim. In guest_port_.., a thread of the guest takes the calls from a port, and in guest_trusted_.., the
# records of a stream are not checked. Without Nim, its paths are left out.
# In `view` and `event_view`, records are read that a stream already has, and only the host's thread
# counts, inside `lab_counted_..`. Their programs are compiled with the options of src/hosts.rs.
#
# On one thread a count is exact. Where threads wait for each other (the calls), it varies by 3 %
# from run to run, because a waiter that runs earlier takes fewer turns. So a path above its limit
# is counted again, up to four times more, and the lowest count is compared. A limit is set from the
# median of five counts.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."

few=2000
many=12000
tries=5
limits=crates/bench/instructions.toml

command -v valgrind >/dev/null || {
  echo "instructions.sh: valgrind is missing: apt-get install valgrind" >&2
  exit 1
}

purpose=print
case ${1:-} in
--check | --record)
  purpose=${1#--}
  shift
  (($# == 0)) || {
    echo "instructions.sh: --$purpose takes all paths, and no names" >&2
    exit 2
  }
  ;;
-*)
  sed -n '4,6s/^# *//p' "$0" >&2
  exit 2
  ;;
esac

# cargo says where the program is. It alone is compiled in one unit: in several,
# a path that is added moves what of the others is inlined where, and their counts with it.
program=$(cargo rustc --locked --release -p thalweg-hot-paths --bin hot_paths --message-format=json-render-diagnostics -- -C codegen-units=1 |
  sed -n 's/.*"name":"hot_paths".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cargo build --locked --release -p thalweg-lab
scripts/generate.sh
library=${CARGO_TARGET_DIR:-$PWD/target}/release/libthalweg_lab.so
options=(-D_GNU_SOURCE -DNDEBUG -O2 -g -Wall -Wextra -Werror -Wno-unused-function -pthread
  -Ibindings/c/include -Ibindings/cpp/include -Icrates/bench/generated/c -Icrates/bench/generated/cpp
  -Icrates/bench/hosts/c -Icrates/bench/hosts/cpp)
"${CC:-cc}" -std=gnu11 "${options[@]}" crates/bench/paths/hosts.c -o "$scratch/hosts_c" -ldl
"${CXX:-c++}" -std=gnu++20 "${options[@]}" crates/bench/paths/hosts.cpp -o "$scratch/hosts_cpp" -ldl
# The same service as a guest in C, which the host in C opens by its address.
cargo build --locked --release -p thalweg-shared
"${CARGO_TARGET_DIR:-$PWD/target}/debug/thalweg" gen --guest c,nim --out "$scratch" crates/bench/wit >/dev/null
lab_guest() {
  "${CC:-cc}" -std=gnu11 "${options[@]}" -fPIC -shared "-I$scratch/guest-c" -Ibindings/c/tests/guests "${@:2}" \
    crates/bench/guest/lab_guest.c -o "$scratch/libguest_$1.so"
}
lab_guest lab
lab_guest lab_port -DLAB_PORT
lab_guest lab_trusted -DLAB_TRUSTED
THALWEG_LIBRARY=${CARGO_TARGET_DIR:-$PWD/target}/release/libthalweg_shared.so
export THALWEG_LIBRARY
has_nim=false
if command -v nim >/dev/null; then
  has_nim=true
  nim c --hints:off --mm:orc -d:danger --passC:-g --nimcache:"$scratch/nim" --path:bindings/nim/src \
    --path:crates/bench/generated/nim --out:"$scratch/hosts_nim" crates/bench/paths/hosts.nim
  nim c --hints:off --app:lib --mm:orc --threads:on -d:useMalloc -d:noSignalHandler -d:danger --passC:-g \
    --nimcache:"$scratch/nim_guest" --path:bindings/nim/src --path:"$scratch/guest-nim" \
    --out:"$scratch/libguest_lab_nim.so" crates/bench/guest/lab_service.nim
fi

# count PATH OPERATIONS: instructions of the whole process.
count() {
  local out=$scratch/$1.$2 run=("$program" "$1" "$2") collect=()
  case $1 in
  c_* | cpp_* | nim_*) run=("$scratch/hosts_${1%%_*}" "$library" "${1#*_}" "$2") ;;
  guest_port_*) run=("$scratch/hosts_c" "thread:$scratch/libguest_lab_port.so" "${1#guest_port_}" "$2") ;;
  guest_trusted_*) run=("$scratch/hosts_c" "thread:$scratch/libguest_lab_trusted.so" "${1#guest_trusted_}" "$2") ;;
  guest_nim_*) run=("$scratch/hosts_c" "thread:$scratch/libguest_lab_nim.so" "${1#guest_nim_}" "$2") ;;
  guest_*) run=("$scratch/hosts_c" "thread:$scratch/libguest_lab.so" "${1#*_}" "$2") ;;
  esac
  case $1 in *_view) collect=(--collect-atstart=no '--toggle-collect=lab_counted_*') ;; esac
  valgrind --quiet --tool=callgrind "${collect[@]}" --callgrind-out-file="$out" "${run[@]}" >"$out.log" 2>&1 || {
    cat "$out.log" >&2
    return 1
  }
  awk '/^(summary|totals):/ { total = $2 } END { print total }' "$out"
}

# measure PATH: what an operation costs, with one digit after the point.
measure() {
  local low high
  low=$(count "$1" "$few")
  high=$(count "$1" "$many")
  awk -v low="$low" -v high="$high" -v operations=$((many - few)) \
    'BEGIN { printf "%.1f\n", (high - low) / operations }'
}

# entry TABLE PATH: its value in the limits' file; nothing where it has none.
entry() {
  awk -v table="[$1]" -v path="$2" '
    /^\[/ { inside = $1 == table }
    inside && $1 == path { gsub(/"/, ""); print $3 ($5 ? " " $5 : "") }' "$limits"
}

# names TABLE: the paths that have a value in the table.
names() {
  awk -v table="[$1]" '/^\[/ { inside = $1 == table } inside && /^[a-z]/ { print $1 }' "$limits"
}

# is_peer PATH: whether the path is only a peer to compare with.
is_peer() { [ -z "$(entry limits "$1")" ] && grep -q "^[a-z].* = \"$1\( \* [0-9.]*\)\?\"$" "$limits"; }

above() { awk -v found="$1" -v limit="$2" 'BEGIN { exit !(found > limit) }'; }

# settle PATH: `PATH COUNT`, counted as often as the purpose asks for.
settle() {
  local found again limit try
  found=$(measure "$1")
  case $purpose in
  check)
    limit=$(entry limits "$1")
    for ((try = 1; try < tries; try++)); do
      if [ -z "$limit" ] || ! above "$found" "$limit"; then break; fi
      again=$(measure "$1")
      if above "$found" "$again"; then found=$again; fi
    done
    ;;
  record)
    for ((try = 1; try < tries; try++)); do found+=$'\n'$(measure "$1"); done
    found=$(sort -n <<<"$found" | sed -n $((tries / 2 + 1))p)
    ;;
  esac
  echo "$1 $found"
}

# The processors that this shell may use, one a line.
processors() {
  awk '/^Cpus_allowed_list:/ {
    count = split($2, ranges, ",")
    for (r = 1; r <= count; r++) {
      ends = split(ranges[r], end, "-")
      for (cpu = end[1]; cpu <= end[ends]; cpu++) print cpu
    }
  }' /proc/self/status
}

# Each processor takes its next path when it finishes one. All threads of a count run on it.
settle_all() {
  local cpus=() jobs=() number job i
  mapfile -t cpus < <(processors)
  for number in "${!cpus[@]}"; do
    (
      taskset -cp "${cpus[number]}" "$BASHPID" >/dev/null
      for ((i = number; i < ${#paths[@]}; i += ${#cpus[@]})); do settle "${paths[i]}"; done
    ) >"$scratch/found.$number" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job"; done
  for i in "${paths[@]}"; do awk -v path="$i" '$1 == path' "$scratch"/found.*; done
}

line() { printf '%-16s %14s %14s  %s\n' "$@"; }

# One line a path, and one a peer that it must not be longer than; whether all are kept.
judge() {
  local path limit peer factor kept=0
  local -A found
  while read -r path limit; do found[$path]=$limit; done <"$scratch/measured"
  line path Ir/operation limit ''
  for path in "${paths[@]}"; do
    limit=$(entry limits "$path")
    if is_peer "$path"; then
      line "$path" "${found[$path]}" - peer
    elif [ -z "$limit" ]; then
      line "$path" "${found[$path]}" none 'NO LIMIT: instructions.sh --record sets it'
      kept=1
    elif above "${found[$path]}" "$limit"; then
      line "$path" "${found[$path]}" "$limit" ABOVE
      kept=1
    else
      line "$path" "${found[$path]}" "$limit" ok
    fi
  done
  while read -r path; do
    if [[ $path == nim_* || $path == guest_nim_* ]] && ! $has_nim; then continue; fi
    if [ -z "${found[$path]:-}" ]; then
      line "$path" none "$(entry limits "$path")" 'NO SUCH PATH'
      kept=1
    fi
  done < <(names limits)
  # allowed TABLE PATH: sets limit, peer and factor to the values that the table allows for the path.
  allowed() {
    read -r peer factor < <(entry "$1" "$2")
    limit=${found[$peer]:-none}
    if [ "$limit" != none ] && [ -n "$factor" ]; then
      limit=$(awk -v limit="$limit" -v factor="$factor" 'BEGIN { printf "%.1f", limit * factor }')
    fi
  }
  while read -r path; do
    if [[ $path == nim_* || $path == guest_nim_* ]] && ! $has_nim; then continue; fi
    allowed at_most "$path"
    if [ "$limit" = none ] || [ -z "${found[$path]:-}" ] || above "${found[$path]}" "$limit"; then
      line "$path" "${found[$path]:-none}" "$limit" "ABOVE $peer${factor:+ x $factor}"
      kept=1
    else
      line "$path" "${found[$path]}" "$limit" "ok, at most $peer${factor:+ x $factor}"
    fi
  done < <(names at_most)
  while read -r path; do
    allowed missed "$path"
    if above "${found[$path]:-0}" "$limit"; then
      line "$path" "${found[$path]}" "$limit" "misses its bar, at most $peer${factor:+ x $factor}"
    else
      line "$path" "${found[$path]:-none}" "$limit" "MET, at most $peer${factor:+ x $factor}: belongs under [at_most]"
      kept=1
    fi
  done < <(names missed)
  return "$kept"
}

mapfile -t paths < <("$program" --names)
for path in call view event event_view; do paths+=("c_$path" "cpp_$path"); done
paths+=(c_call_brief guest_call guest_call_brief guest_event guest_trusted_event guest_port_call)
if $has_nim; then paths+=(nim_call guest_nim_call guest_nim_call_brief guest_nim_event); fi
if (($#)); then paths=("$@"); fi
settle_all >"$scratch/measured"

case $purpose in
print)
  line path Ir/operation '' ''
  while read -r path found; do line "$path" "$found" '' ''; done <"$scratch/measured"
  ;;
record)
  {
    awk '/^\[limits\]/ { exit } { print }' "$limits"
    echo '[limits]'
    while read -r path found; do
      is_peer "$path" || awk -v path="$path" -v found="$found" 'BEGIN { printf "%s = %.1f\n", path, found * 1.02 }'
    done <"$scratch/measured"
    awk '/^# Paths that must not/ { on = 1; print "" } on' "$limits"
  } >"$scratch/limits"
  cat "$scratch/limits" >"$limits"
  cat "$limits"
  ;;
check)
  judge || {
    printf '\ninstructions.sh: a hot path is longer than %s allows (above)\n' "$limits" >&2
    exit 1
  }
  ;;
esac
