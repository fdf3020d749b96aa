#!/usr/bin/env bash
# Install the tools that the repository needs on this machine, except those already installed.
#
#   scripts/setup.sh build     everything for `make build` and `make run`
#   scripts/setup.sh gateway   also nginx, for `make gateway`
#   scripts/setup.sh test      also everything for `make lint` and `make test`
#   scripts/setup.sh prove     also everything for `make prove`
#
# Checks the toolchains. Installs missing system packages if it can (root on a system with apt);
# otherwise prints the one command that does. Installs the pinned Rust toolchains through rustup and
# the pinned Python tools into .venv. A second run without changes takes well under a second.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
case $purpose in build | gateway | test | prove) ;; *)
  echo "usage: scripts/setup.sh [build|gateway|test|prove]" >&2
  exit 2
  ;;
esac

python_needed=3.11
rust_needed=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
nightly=$(cat scripts/nightly-version)
stamps=build/stamps
# Whether tests and linters run, too.
tests=no
case $purpose in test | prove) tests=yes ;; esac
mkdir -p "$stamps"

# rustup adds itself to the shell's profile, which a shell started by make or CI may not have read.
# The Python that creates .venv must not be the one in it.
PATH=":$PATH:"
PATH=${PATH//":$PWD/.venv/bin:"/:}
export PATH="$PWD/build/go/bin:$HOME/.cargo/bin${PATH%:}"

problems=()
problem() { problems+=("$1"); }
say() { printf 'setup: %s\n' "$*"; }

# The steps below need everything above, so the problems found so far end the set-up here.
stop_on_problems() {
  if ((${#problems[@]})); then
    for line in "${problems[@]}"; do printf 'setup: %s\n' "$line" >&2; done
    exit 1
  fi
}

have() { command -v "$1" >/dev/null 2>&1; }

# at_least FOUND NEEDED: versions compared number by number.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

python_version() {
  "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null || true
}

# The first Python on the PATH that is new enough.
find_python() {
  local name version
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    have "$name" || continue
    version=$(python_version "$name")
    if [ -n "$version" ] && at_least "$version" "$python_needed"; then
      command -v "$name"
      return 0
    fi
  done
  return 1
}

# --- System packages -------------------------------------------------------------------------------

missing_packages() {
  local python
  have cc || echo gcc libc6-dev
  have g++ || echo g++
  # A compiler without the headers of the C library is useless.
  if have cc && ! echo '#include <stdio.h>' | cc -E -x c - >/dev/null 2>&1; then echo libc6-dev; fi
  have git || echo git
  have grep || echo grep
  if ! have python3; then
    echo python3 python3-venv
  elif python=$(find_python) && ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Only Debian packages venv separately from Python; the package name follows the interpreter's.
    if [ "$python" = /usr/bin/python3 ]; then echo python3-venv; else echo "$(basename "$python")-venv"; fi
  fi
  if [ "$purpose" = prove ]; then
    # The page for new users builds a C program with both.
    have cmake || echo cmake
    have pkg-config || echo pkg-config
    have wrk || echo wrk
  fi
  if [ "$tests" = yes ]; then
    have shellcheck || echo shellcheck
    # Counts instructions of the hot paths.
    have valgrind || echo valgrind
    # Its event loop runs the coroutines of the C++ binding in a test.
    if ! have g++ || ! echo '#include <asio.hpp>' | g++ -DASIO_STANDALONE -E -x c++ - >/dev/null 2>&1; then echo libasio-dev; fi
    # Debian 13 has no Nim, so it is installed only where apt has it. Without it, the steps that need
    # it report it, and fail if CI is set.
    if ! have nim && apt-cache show nim >/dev/null 2>&1; then echo nim; fi
    # The C runner of the conformance scenarios parses them with it.
    if have cc && ! echo '#include <jansson.h>' | cc -E -x c - >/dev/null 2>&1; then echo libjansson-dev; fi
  fi
}

install_packages() {
  local packages
  read -r -a packages <<<"$(missing_packages | tr '\n' ' ')"
  ((${#packages[@]})) || return 0
  local line="apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
  if ! have apt-get; then
    problem "missing here, and there is no apt-get to install them with (Debian's names): ${packages[*]}"
  elif [ "$(id -u)" != 0 ]; then
    problem "system packages are missing; install them with this line, then run again:"
    problem "  sudo sh -c '$line'"
  else
    say "installing ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    if ! { apt-get update -q &&
      apt-get install -q -y --no-install-recommends "${packages[@]}"; } </dev/null >"$stamps/apt.log" 2>&1; then
      tail -n 20 "$stamps/apt.log" >&2
      problem "apt-get failed (above is its reason); the line was: $line"
    fi
  fi
}

# --- Toolchains ------------------------------------------------------------------------------------

check_python() {
  local found
  if ! python=$(find_python); then
    if have python3; then
      found=$(python_version python3)
      problem "python3 is ${found:-one that does not run} ($(command -v python3)); $python_needed or newer is needed"
    else
      problem "python3 is missing; $python_needed or newer is needed"
    fi
  elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    problem "$python has no venv module; install its venv package"
  fi
}

rustup_log() {
  if ! rustup "$@" </dev/null >"$stamps/rustup.log" 2>&1; then
    tail -n 5 "$stamps/rustup.log" >&2
    return 1
  fi
}

check_rust() {
  local found
  if have rustup; then
    if ! rustup run "$rust_needed" rustc --version >/dev/null 2>&1; then
      say "installing Rust $rust_needed"
      rustup_log toolchain install "$rust_needed" --profile minimal --no-self-update -c rustfmt -c clippy ||
        problem "rustup could not install Rust $rust_needed (above is its reason)"
    elif ! rustup run "$rust_needed" cargo fmt --version >/dev/null 2>&1 ||
      ! rustup run "$rust_needed" cargo clippy --version >/dev/null 2>&1; then
      say "adding rustfmt and clippy"
      rustup_log component add --toolchain "$rust_needed" rustfmt clippy ||
        problem "rustup could not add rustfmt and clippy to Rust $rust_needed (above is its reason)"
    fi
  elif have cargo; then
    found=$(cargo --version | cut -d ' ' -f 2)
    at_least "$found" "$rust_needed" ||
      problem "cargo is $found ($(command -v cargo)); $rust_needed or newer is needed: https://rustup.rs"
  else
    problem "cargo is missing; $rust_needed or newer is needed: https://rustup.rs"
  fi
}

# Miri and the foreign target widen the test coverage. If they are not available (no rustup, no
# network), the test steps that need them report it, and fail if CI is set; the set-up continues.
check_test_toolchains() {
  have rustup || return 0
  if ! rustup run "$nightly" cargo miri --version >/dev/null 2>&1; then
    say "installing Rust $nightly with Miri"
    rustup_log toolchain install "$nightly" --profile minimal --no-self-update -c miri -c rust-src ||
      say "WARNING: no $nightly with Miri: its step will be skipped"
  fi
  if ! [ -d "$(rustup run "$rust_needed" rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu" ]; then
    say "adding the aarch64 target"
    rustup_log target add --toolchain "$rust_needed" aarch64-unknown-linux-gnu ||
      say "WARNING: no aarch64 target: its check will be skipped"
  fi
}

# cargo-deny checks the dependencies. It is compiled without optimisation: this takes a minute or
# two, and the result is fast enough.
check_deny() {
  local wanted
  wanted=$(cat scripts/deny-version)
  [ "$(cargo deny --version 2>/dev/null)" != "cargo-deny $wanted" ] || return 0
  say "compiling cargo-deny $wanted"
  CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=$PWD/build/cargo-deny cargo install cargo-deny --version "$wanted" \
    --locked --debug --force </dev/null >"$stamps/cargo-deny.log" 2>&1 ||
    say "WARNING: no cargo-deny $wanted: its check will be skipped ($stamps/cargo-deny.log says why)"
  rm -rf build/cargo-deny
}

# An emulator of 64-bit Arm, and a linker with that system's C library; also optional.
check_emulator() {
  local packages=()
  have qemu-aarch64 || have qemu-aarch64-static || packages+=(qemu-user)
  have aarch64-linux-gnu-gcc || packages+=(gcc-aarch64-linux-gnu)
  [ -e /usr/aarch64-linux-gnu/lib/libc.so ] || packages+=(libc6-dev-arm64-cross)
  ((${#packages[@]})) || return 0
  if have apt-get && [ "$(id -u)" = 0 ]; then
    say "installing ${packages[*]}"
    if { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${packages[@]}"; } </dev/null >"$stamps/apt.log" 2>&1; then
      return 0
    fi
  fi
  say "WARNING: not installed: ${packages[*]} (Debian's names): prove-aarch64 will be skipped"
}

# Go, for guests; also optional. Debian's is too old.
check_go() {
  scripts/have-go.sh && return 0
  say "installing Go into build/go"
  "$python" scripts/install-go.py </dev/null >"$stamps/go.log" 2>&1 ||
    say "WARNING: no Go: lint-go and test-go will be skipped ($stamps/go.log says why)"
}

# nginx with its Lua module, whose packages only Debian has; also optional.
check_nginx() {
  local packages=()
  have nginx || packages+=(nginx)
  [ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] || packages+=(libnginx-mod-http-lua lua-resty-core lua-resty-lrucache)
  # Its headers, which the module in bindings/lua is compiled with.
  [ -e /usr/share/nginx/src/configure ] || packages+=(nginx-dev)
  have luacheck || packages+=(lua-check)
  # The conformance runner parses the scenarios with it.
  compgen -G '/usr/lib/*/lua/5.1/cjson.so' >/dev/null || packages+=(lua-cjson)
  have curl || packages+=(curl)
  ((${#packages[@]})) || return 0
  if [ -e /etc/debian_version ] && have apt-get && [ "$(id -u)" = 0 ]; then
    say "installing ${packages[*]}"
    if { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${packages[@]}"; } </dev/null >"$stamps/apt-nginx.log" 2>&1; then
      # Debian 12 has this LuaJIT, which runs a test of generated code.
      have luajit || DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends luajit2 \
        </dev/null >>"$stamps/apt-nginx.log" 2>&1 ||
        say "WARNING: not installed: luajit2: a test of generated Lua will be skipped"
      return 0
    fi
  fi
  say "WARNING: not installed: ${packages[*]} (Debian's names): lint-lua and test-lua will be skipped"
}

# --- Python tools ----------------------------------------------------------------------------------

# A virtual environment contains its own path, so a clone that was moved needs a new one.
check_venv() {
  local key stamp
  key=$({ cat scripts/python-tools.txt && pwd && echo "$python" && python_version "$python"; } |
    sha256sum | cut -c 1-16)
  stamp=$stamps/venv-$key
  if [ -e "$stamp" ] && [ -x .venv/bin/python ]; then return 0; fi
  say "installing Python tools into .venv"
  rm -rf .venv "$stamps"/venv-*
  if ! { "$python" -m venv .venv &&
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
      --require-hashes -r scripts/python-tools.txt; } </dev/null >"$stamps/pip.log" 2>&1; then
    tail -n 20 "$stamps/pip.log" >&2
    problem "pip could not install scripts/python-tools.txt (above is its reason)"
    return 0
  fi
  touch "$stamp"
}

# --- Node tools ------------------------------------------------------------------------------------

# Debian 12 has no Node 20, so this is optional: without it, the steps that need it report it, and
# fail if CI is set.
check_node() {
  local stamp
  if ! have node || ! have npm || ! at_least "$(node -p process.versions.node)" 20.0.0; then
    say "WARNING: no Node 20 or newer with npm: lint-node and test-node will be skipped"
    return 0
  fi
  stamp=$stamps/node-$(sha256sum bindings/node/package-lock.json | cut -c 1-16)
  if [ -e "$stamp" ] && [ -d bindings/node/node_modules ]; then return 0; fi
  say "installing Node tools into bindings/node/node_modules"
  rm -f "$stamps"/node-*
  if ! npm ci --prefix bindings/node --no-audit --no-fund </dev/null >"$stamps/npm.log" 2>&1; then
    say "WARNING: npm could not install bindings/node/package-lock.json: lint-node will fail ($stamps/npm.log says why)"
    return 0
  fi
  touch "$stamp"
}

install_packages
stop_on_problems
check_python
check_rust
stop_on_problems
check_venv
if [ "$tests" = yes ]; then
  check_test_toolchains
  check_deny
  check_node
  check_go
fi
if [ "$purpose" != build ]; then check_nginx; fi
if [ "$purpose" = prove ]; then check_emulator; fi
stop_on_problems
