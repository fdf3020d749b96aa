#!/usr/bin/env bash
# Run the gateway on 127.0.0.1 until Ctrl-C, or show it once and stop it.
#
#   serve.sh [PORT]        serves on PORT [20080]
#   serve.sh show          starts it on a free port, sends requests with curl, and stops it
#
# DIR is the directory to search [docs], and PATTERN the pattern that `show` searches for. LIBRARIES is
# the folder of the services in Rust and of libthalweg.so [target/release], and GUESTS that of the guests
# [target/guests].
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$PWD
target=$(realpath "${CARGO_TARGET_DIR:-target}")
libraries=$(realpath "${LIBRARIES:-$target/release}")
guests=$(realpath "${GUESTS:-$target/guests}")
dir=${DIR:-docs}
port=${1:-20080}
pattern=${PATTERN:-mode [AB]}

fail() {
  echo "gateway: $1" >&2
  exit 1
}

[ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] || fail "needs nginx and libnginx-mod-http-lua"
for library in thalweg thalweg_search thalweg_echo; do
  [ -e "$libraries/lib$library.so" ] || fail "$libraries has no lib$library.so: make gateway"
done
if [ "$port" = show ]; then
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
fi

if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then fail "port $port is in use"; fi

# nginx writes its log and its temporary files here.
prefix=$(mktemp -d)
nginx=
stop() {
  if [ -n "$nginx" ]; then
    kill -QUIT "$nginx" 2>/dev/null || true
    wait "$nginx" || true
  fi
  rm -rf "$prefix"
}
trap stop EXIT
trap 'exit 0' INT TERM

# Only root can choose the user of the workers.
user=
if [ "$(id -u)" = 0 ]; then user="user root;"; fi
sed -e "s|@PORT@|$port|g; s|@ROOT@|$root|g; s|@TARGET@|$target|g; s|@LIBRARIES@|$libraries|g; s|@GUESTS@|$guests|g; s|@USER@|$user|g" \
  examples/gateway/nginx.conf >"$prefix/nginx.conf"
GATEWAY_DIR=$dir THALWEG_LIBRARY=$libraries/libthalweg.so nginx -p "$prefix" -c "$prefix/nginx.conf" -e "$prefix/error.log" &
nginx=$!

base=http://127.0.0.1:$port
for _ in $(seq 100); do
  if curl -sf "$base/metrics" >/dev/null; then break; fi
  kill -0 "$nginx" 2>/dev/null || break
  sleep 0.05
done
curl -sf "$base/metrics" >/dev/null || {
  cat "$prefix/error.log" >&2
  fail "nginx did not start"
}

if [ "${1:-}" != show ]; then
  echo "gateway: $base/search?pattern=REGEX, /echo, /echo/LANGUAGE, /ticks/LANGUAGE and /metrics; it searches $dir"
  wait "$nginx"
  exit
fi

# show LINES COMMAND..: prints a command, runs it, and prints the first LINES lines of its output.
show() {
  local lines=$1
  shift
  printf '\n$'
  printf ' %q' "$@"
  printf '\n'
  "$@" | sed -n "1,${lines}p"
}

show 5 curl -sG "$base/search" --data-urlencode "pattern=$pattern"
show 4 curl -sG "$base/search" --data-urlencode "pattern=("
show 99 curl -s "$base/echo"
for language in $(curl -s "$base/echo" | cut -d ' ' -f 1); do
  show 1 curl -s "$base/echo/$language?delay_ms=10" --data-binary "hello"
  echo
  show 3 curl -s "$base/ticks/$language?every_ms=10&times=3"
done
show 1 curl -s "$base/echo/cobol" --data-binary "hello"
show 6 curl -s "$base/metrics"
echo
