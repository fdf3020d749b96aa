# Everything a person or CI does with this repository. `make` alone lists the main targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# rustup adds itself to the shell's profile, which shells in CI may not read.
# scripts/setup.sh installs Go into build/go if the system's is too old. Debian has nginx in /usr/sbin, which
# is only in root's PATH.
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/build/go/bin:$(HOME)/.cargo/bin:$(PATH):/usr/sbin
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export PYTHONDONTWRITEBYTECODE := 1
# A target builds everything once, so writing incremental state takes longer than it saves.
export CARGO_INCREMENTAL ?= 0
RELEASE := $(CARGO_TARGET_DIR)/release
# Arguments reach the shell unchanged: make does not expand its own variables in them. An unset pattern differs
# from an empty pattern.
ifneq ($(origin PATTERN),undefined)
override PATTERN := $(value PATTERN)
WITH_PATTERN := --pattern "$$PATTERN"
endif
override DIR := $(value DIR)
export DIR PATTERN

NIGHTLY := $(shell cat scripts/nightly-version)
HAVE_NODE = command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)'
HAVE_GO = scripts/have-go.sh
HAVE_NGINX = command -v nginx >/dev/null && [ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ]
# Builds with other flags use their own folder, so that they do not invalidate each other.
LOOM := env CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/loom RUSTFLAGS="--cfg loom" cargo test --locked --profile loom
# Miri takes seconds to resolve a backtrace, for each panic of a test.
MIRI := RUST_BACKTRACE=0 CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/miri cargo +$(NIGHTLY) miri test --locked

LINTS := lint-rust lint-docs lint-aarch64 lint-c lint-cpp lint-python lint-node lint-nim lint-go lint-lua lint-shell lint-generated lint-text lint-unsafe lint-deny
TESTS := test-rust test-loom test-miri test-c test-cpp test-python test-node test-node-hosts test-nim test-nim-channels test-go test-lua test-conformance test-sanitizers test-instructions

# `## ` marks a main target, `##bench ` and `##prove ` the targets of the two longer lists.
LIST = awk -v mark="\#\#$(1) " '/^[a-z0-9-]+:/ { at = index($$0, mark); \
  if (at) { split($$0, name, ":"); printf "  make %-16s %s\n", name[1], substr($$0, at + length(mark)) } }' $(MAKEFILE_LIST)

.PHONY: help
help: ## List the main targets
	@$(call LIST,)
	@echo; echo '  make bench-help lists the benchmark lab, make prove-help the longer proofs and checks'

.PHONY: bench-help
bench-help: # List the targets of the benchmark lab
	@$(call LIST,bench)

.PHONY: prove-help
prove-help: # List the proofs: longer tests, each a target of its own
	@$(call LIST,prove)

.PHONY: setup
setup:
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh test

.PHONY: setup-prove
setup-prove:
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh prove

.PHONY: setup-gateway
setup-gateway:
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh gateway

.PHONY: setup-build
setup-build:
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh build

SEARCH := -p thalweg-search -p thalweg-search-rust -p thalweg-search-run

# One cargo command: packages that are built together share features, and separate commands would rebuild them.
.PHONY: build
build: build-python build-c build-cpp build-node build-nim ## Build the libraries, the command, the Python package, the example and the lab
	cargo build --locked --release $(SEARCH) -p thalweg-cli -p thalweg-bench -p thalweg-lab -p thalweg-shared
	@ln -f "$(RELEASE)/libthalweg_shared.so" "$(RELEASE)/libthalweg.so"
	@"$(RELEASE)/thalweg" gen crates/bench/wit >/dev/null
	@"$(RELEASE)/thalweg" gen --guest c crates/bench/wit >/dev/null
	@"$(RELEASE)/thalweg" gen --guest go --out crates/bench/guest/go crates/bench/wit >/dev/null

# Builds the programs that `make run` runs.
.PHONY: build-search
build-search: build-python build-c build-cpp build-node build-nim
	cargo build --locked --release $(SEARCH)

.PHONY: build-c
build-c: setup-build
	@mkdir -p "$(RELEASE)"
	@$(CC) -std=c99 -O2 -Wall -Ibindings/c/include -Iexamples/search/generated/c \
	  examples/search/hosts/c/search.c -o "$(RELEASE)/search-c" -ldl

.PHONY: build-cpp
build-cpp: setup-build
	@mkdir -p "$(RELEASE)"
	@$(CXX) -std=c++20 -O2 -DNDEBUG -Wall -Ibindings/cpp/include -Ibindings/c/include -Iexamples/search/generated/cpp \
	  -Iexamples/search/generated/c examples/search/hosts/cpp/search.cpp -o "$(RELEASE)/search-cpp" -pthread -ldl

.PHONY: build-python
build-python: setup-build
	bindings/python/build.sh

.PHONY: build-node
build-node: setup-build
	@if $(HAVE_NODE); then bindings/node/build.sh; fi

.PHONY: build-nim
build-nim: setup-build
	@mkdir -p "$(RELEASE)"
	@if command -v nim >/dev/null; then nim c --hints:off --mm:orc -d:danger --nimcache:"$(RELEASE)/nim-cache/search" \
	  --path:bindings/nim/src --path:examples/search/generated/nim --out:"$(RELEASE)/search-nim" examples/search/hosts/nim/search_host.nim; fi

# `env` in the registry's folder tells cargo and pip where to find both: docs/getting-started.md.
.PHONY: registry
registry: ## Build a local cargo registry of the crates, until a release is published
	@scripts/registry.py

.PHONY: wheel
wheel: setup-build ## Build the wheel of the Python package `thalweg` into target/wheels
	bindings/python/wheel.sh "$(CARGO_TARGET_DIR)/wheels"
	@ls "$(CARGO_TARGET_DIR)"/wheels/*.whl

.PHONY: run
run: build-search ## Search a directory from every language and compare (DIR= PATTERN=)
	@node=(); if $(HAVE_NODE); then node=(--node "$$(command -v node)" --node-script examples/search/hosts/node/search.js); \
	else echo "Node 20 or newer is not installed, so that it has no row"; fi; \
	nim=(); if command -v nim >/dev/null; then nim=(--nim "$(RELEASE)/search-nim"); \
	else echo "Nim is not installed, so that it has no row"; fi; \
	"$(RELEASE)/search-run" --library "$(RELEASE)/libthalweg_search.so" --rust "$(RELEASE)/search-rust" \
	  --c "$(RELEASE)/search-c" --cpp "$(RELEASE)/search-cpp" --python .venv/bin/python --script examples/search/hosts/python/search.py \
	  "$${node[@]}" "$${nim[@]}" --dir "$$DIR" $(WITH_PATTERN)

.PHONY: gateway
gateway: setup-gateway ## Search and echo through nginx: start it on a free port, show it with curl, stop it (DIR= PATTERN=)
	cargo build --locked --release -p thalweg-search -p thalweg-echo -p thalweg-shared -p thalweg-cli
	@ln -f "$(RELEASE)/libthalweg_shared.so" "$(RELEASE)/libthalweg.so"
	THALWEG="$(RELEASE)/thalweg" scripts/build-guests.sh
	bindings/lua/build.sh
	@examples/gateway/serve.sh show

.PHONY: clean
clean: ## Remove everything that was built or installed here
	cargo clean --quiet
	rm -rf build node_modules conformance/generated crates/bench/generated bindings/nim/bench/generated bindings/node/node_modules bindings/node/prebuilds .venv .mypy_cache .ruff_cache .pytest_cache

# Values reach the shell as one word each.
export NAMES HOURS SAN
HOURS ?= 1
SAN ?= asan
BENCH := "$(RELEASE)/thalweg" bench

.PHONY: bench
bench: build ## Measure what each part costs (NAMES="spsc_threads mpsc")
	@$(BENCH) run $$NAMES

.PHONY: bench-all
bench-all: build ##bench Run everything except the endurance runs; the report is in benchmarks/reports
	@$(BENCH) report $(addprefix --group ,queue boundary streaming nginx runtime stress)

.PHONY: bench-quick
bench-quick: build ##bench Run everything with short samples; it judges nothing, and the files are in benchmarks/reports
	@mkdir -p benchmarks/reports
	@$(BENCH) run --quick --json benchmarks/reports/quick.json --csv benchmarks/reports/quick.csv

.PHONY: bench-stress
bench-stress: build ##bench Run the four stress tests: many channels at once, network load, contention, full queues
	@$(BENCH) run --group stress

.PHONY: bench-endurance
bench-endurance: build ##bench Look for leaks and drift for HOURS= (default 1); fails where its rules do
	@mkdir -p benchmarks/reports
	@$(BENCH) run --group endurance --duration "$${HOURS}h" --enforce --json "benchmarks/reports/endurance_$$(date -u +%Y%m%dT%H%M%SZ).json"

.PHONY: bench-peers
bench-peers: setup-build ##bench Build the peers that Python and Node load: PyO3, UniFFI, napi-rs
	crates/bench/peers/python/build.sh
	@if $(HAVE_NODE); then crates/bench/peers/node/build.sh; fi

.PHONY: bench-info
bench-info: build ##bench List what makes this machine unsuitable for measuring
	@$(BENCH) doctor

.PHONY: results
results: build ##bench Write the committed results as a table, CSV and charts to benchmarks/reports
	@$(BENCH) report $$(git ls-files 'benchmarks/results/*.json.gz' | sed 's/^/--from /')

.PHONY: clean-results
clean-results: ##bench Remove benchmarks/reports; committed results stay
	rm -rf benchmarks/reports

# The gate needs at least four processors. With fewer it is not judged. That, or an interval that contains the limit,
# is a skip here and a failure in CI.
.PHONY: gate
gate: build ##bench Check that submission through the C table scales with its threads, by 1.5 x at least
	@mkdir -p benchmarks/reports; status=0; THALWEG_SCALING_GATE=1 THALWEG_SUBMIT_THREADS=1,2,4,8 \
	  $(BENCH) run port_submit --enforce --json benchmarks/reports/gate.json || status=$$?; \
	if [ "$$status" = 2 ]; then scripts/skip.sh $@ "it was not decided; the reason is above"; else exit "$$status"; fi

.PHONY: san
san: setup ##bench Run submission under a sanitizer (SAN= asan, lsan or tsan)
	@crates/bench/sanitizer.sh "$$SAN" $(NIGHTLY)

.PHONY: test
test: setup ## Run everything that CI runs: lint, then all tests
	@SETUP_DONE=yes scripts/steps.sh test $(LINTS) $(TESTS)

.PHONY: check
check: setup ## Check only what changed: format, lint, unit tests, text (BASE= compares with a commit)
	@scripts/check.sh $${BASE:-}

.PHONY: lint
lint: setup ## Run formatters, linters, documentation, and the check of generated code
	@SETUP_DONE=yes scripts/steps.sh lint $(LINTS)

.PHONY: prove
prove: setup-prove ##prove Run all proofs
	@SETUP_DONE=yes scripts/steps.sh prove prove-loom prove-miri prove-tsan prove-asan prove-million prove-aarch64 prove-faults prove-trees prove-calls prove-random prove-fuzz prove-hostile prove-soak prove-reload prove-nginx prove-guests prove-package

# --- Lint -----------------------------------------------------------------------------------------

.PHONY: lint-rust
lint-rust: setup
	cargo fmt --all -- --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

.PHONY: lint-docs
lint-docs: setup
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

.PHONY: lint-aarch64
lint-aarch64: setup
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu" ]; then set -x; \
	  RUSTFLAGS="-D warnings" cargo check --locked --target aarch64-unknown-linux-gnu -p thalweg-queue -p thalweg-wire -p thalweg-runtime -p thalweg-patterns -p thalweg-port; \
	else scripts/skip.sh $@ "Rust's target aarch64-unknown-linux-gnu is not installed"; fi

.PHONY: lint-c
lint-c: setup
	git ls-files -z '*.c' '*.h' ':!*/generated/*' ':!*/golden/*' | xargs -0 clang-format --dry-run -Werror

.PHONY: lint-cpp
lint-cpp: setup
	git ls-files -z '*.cpp' '*.hpp' ':!*/generated/*' | xargs -0 clang-format --dry-run -Werror
	@bindings/cpp/tidy.sh

.PHONY: lint-python
lint-python: setup
	scripts/generate.sh
	ruff format --check . conformance/generated crates/bench/generated
	ruff check . conformance/generated crates/bench/generated
	mypy

.PHONY: lint-node
lint-node: setup
	@if $(HAVE_NODE); then set -x; bindings/node/build.sh; \
	  bindings/node/node_modules/.bin/tsc -p bindings/node; \
	  bindings/node/node_modules/.bin/biome ci biome.json bindings/node conformance/node examples; \
	else scripts/skip.sh $@ "Node 20 or newer with npm is not installed"; fi

.PHONY: lint-nim
lint-nim: setup
	@if command -v nim >/dev/null; then scripts/lint-nim.sh; \
	else scripts/skip.sh $@ "Nim is not installed"; fi

.PHONY: lint-go
lint-go: setup
	@if $(HAVE_GO); then scripts/lint-go.sh; \
	else scripts/skip.sh $@ "Go 1.24 or newer is not installed"; fi

.PHONY: lint-lua
lint-lua: setup
	@if command -v luacheck >/dev/null; then set -x; scripts/generate.sh; \
	  luacheck --quiet bindings/lua crates/bench/hosts/nginx conformance/lua conformance/generated/lua crates/bench/generated/lua examples/*/generated/lua examples/gateway/lua; \
	else scripts/skip.sh $@ "luacheck is not installed"; fi

.PHONY: lint-shell
lint-shell: setup
	git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck

# Generates everything twice and compares: the committed code with what the generators write now, and the rest with the
# first run. Uses the same features as `test-rust`, so that neither has to rebuild for the other.
.PHONY: lint-generated
lint-generated: setup
	cargo build --locked --workspace --bin thalweg --test this_workspace
	scripts/generate.sh
	"$(CARGO_TARGET_DIR)/debug/thalweg" gen --check

.PHONY: lint-text
lint-text: setup
	scripts/check-text.sh

.PHONY: lint-unsafe
lint-unsafe: setup
	scripts/test-unsafe-lint.sh

.PHONY: lint-deny
lint-deny: setup
	@if [ "$$(cargo deny --version 2>/dev/null)" = "cargo-deny $$(cat scripts/deny-version)" ]; then set -x; \
	  cargo deny --locked check bans licenses sources; \
	else scripts/skip.sh $@ "cargo-deny $$(cat scripts/deny-version) is not installed"; fi

# Needs the network, for the advisory database: CI runs it. A crate that nobody maintains is refused where it is published with ours.
.PHONY: advisories
advisories: setup ##prove Look for known defects and unmaintained crates among the dependencies (needs the network)
	cargo deny --locked check --allow unmaintained advisories
	cargo deny --locked --exclude-unpublished check advisories

# --- Tests ----------------------------------------------------------------------------------------

.PHONY: test-rust
test-rust: setup
	cargo test --locked --workspace --no-fail-fast
	cargo run --locked --profile abort -p thalweg-abort

.PHONY: test-loom
test-loom: setup
	LOOM_MAX_PREEMPTIONS=2 $(LOOM) -p thalweg-queue -p thalweg-runtime -p thalweg-port --lib --test loom

# Runs the tests that reach unsafe code; wire has none. Miri cannot switch stacks, so each actor is a thread. Miri uses one
# processor per test, so the longest test is first.
.PHONY: test-miri
test-miri: setup
	@if cargo +$(NIGHTLY) miri --version >/dev/null 2>&1; then \
	  cargo +$(NIGHTLY) miri setup --quiet; \
	  scripts/side-by-side.sh \
	    "$(MIRI) -p thalweg-port --lib -- instance::" \
	    "$(MIRI) -p thalweg-port --lib -- --skip instance::" \
	    "$(MIRI) -p thalweg-queue --test channels -- oneshot:: drops::each::spsc:: drops::each::mpmc:: broadcast:: broadcast_random:: rendezvous:: rendezvous_random::" \
	    "$(MIRI) -p thalweg-runtime --test integration -- actors::" \
	    "$(MIRI) -p thalweg-queue --lib"; \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY) with Miri"; fi

.PHONY: test-c
test-c: setup
	bindings/c/test.sh

.PHONY: test-cpp
test-cpp: setup
	bindings/cpp/test.sh

.PHONY: test-python
test-python: setup
	bindings/python/test.sh

.PHONY: test-node
test-node: setup
	@if $(HAVE_NODE); then bindings/node/test.sh; \
	else scripts/skip.sh $@ "Node 20 or newer with npm is not installed"; fi

.PHONY: test-nim
test-nim: setup
	@if command -v nim >/dev/null; then bindings/nim/test.sh; \
	else scripts/skip.sh $@ "Nim is not installed"; fi

.PHONY: test-node-hosts
test-node-hosts: setup
	@if $(HAVE_NODE); then conformance/node/test.sh && scripts/test-node-hosts.sh; \
	else scripts/skip.sh $@ "Node 20 or newer with npm is not installed"; fi

.PHONY: test-nim-channels
test-nim-channels: setup
	@if command -v nim >/dev/null; then bindings/nim/channels/test.sh; \
	else scripts/skip.sh $@ "nim is not installed"; fi

.PHONY: test-go
test-go: setup
	@if $(HAVE_GO); then bindings/go/test.sh; \
	else scripts/skip.sh $@ "Go 1.24 or newer is not installed"; fi

.PHONY: test-lua
test-lua: setup
	@if $(HAVE_NGINX); then bindings/lua/test.sh && conformance/lua/test.sh; \
	else scripts/skip.sh $@ "nginx with libnginx-mod-http-lua is not installed"; fi

# Runs the services in other languages with the host in C; `prove-guests` runs them with every host.
# Reads the reports that `test-rust`, `test-c`, `test-cpp`, `test-python`, `test-node-hosts`, `test-nim` and `test-lua` write.
.PHONY: test-conformance
test-conformance: setup
	@if $(HAVE_NODE) && $(HAVE_NGINX) && $(HAVE_GO) && command -v nim >/dev/null; then set -x; cargo build --locked --workspace --bin thalweg --test this_workspace; \
	  "$(CARGO_TARGET_DIR)/debug/thalweg" conformance --no-run --check; \
	  "$(CARGO_TARGET_DIR)/debug/thalweg" conformance --guests --host C --check; \
	else scripts/skip.sh $@ "Node 20 or newer with npm, nginx with libnginx-mod-http-lua, Nim, or Go 1.24 is not installed, and has a report"; fi

.PHONY: test-sanitizers
test-sanitizers: setup
	@if rustup run $(NIGHTLY) rustc --version >/dev/null 2>&1; then scripts/test-sanitizers.sh $(NIGHTLY); \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY)"; fi

.PHONY: test-instructions
test-instructions: setup
	crates/bench/instructions.sh --check

# --- Proofs ---------------------------------------------------------------------------------------

# Not part of `test` because it builds everything again, as a user would: docs/getting-started.md.
.PHONY: prove-package
prove-package: setup-prove ##prove Run every command of docs/getting-started.md in an empty folder
	scripts/prove-package.sh

# LOOM_SECONDS limits each model, because some take hours at bound 3. The output ends with the models that were cut off.
# test-loom explores each model completely, with one preemption less.
LOOM_SECONDS ?= 200
export LOOM_SECONDS
.PHONY: prove-loom
prove-loom: setup ##prove loom at bound 3
	@scripts/prove-loom.sh "$$LOOM_SECONDS" $(LOOM)

.PHONY: prove-miri
prove-miri: setup ##prove Miri over more tests, with many seeds and with tree borrows
	MIRIFLAGS="-Zmiri-many-seeds=0..16" $(MIRI) -p thalweg-queue --lib
	$(MIRI) -p thalweg-queue --test channels -- oneshot:: drops:: closing::
	$(MIRI) -p thalweg-wire
	$(MIRI) -p thalweg-runtime --lib
	$(MIRI) -p thalweg-runtime --test integration -- actors:: joining:: sync:: sync_endings:: sync_stress::
	$(MIRI) -p thalweg-patterns --lib --test integration -- breakers:: bulkheads:: rate_limits:: window::
	MIRIFLAGS="-Zmiri-disable-isolation" $(MIRI) -p thalweg-runtime --test integration -- exits:: groups:: supervisors_restarting::
	MIRIFLAGS="-Zmiri-tree-borrows" $(MIRI) -p thalweg-runtime --test integration -- actors:: joining:: sync:: sync_endings:: sync_stress::

# ThreadSanitizer must see the standard library too, so the library is built with it. It cannot follow a switch of stacks, so
# each actor is a thread. One test allocates more memory than there is and handles the failure itself.
.PHONY: prove-tsan
prove-tsan: setup ##prove ThreadSanitizer over queue, runtime, patterns and port
	TSAN_OPTIONS=allocator_may_return_null=1 CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/tsan RUSTFLAGS="-Zsanitizer=thread --cfg thalweg_threads" \
	  cargo +$(NIGHTLY) test --locked -Zbuild-std --target x86_64-unknown-linux-gnu \
	    -p thalweg-queue -p thalweg-runtime -p thalweg-patterns -p thalweg-port --tests --no-fail-fast

# Each test has its own process, because it reads figures of the whole process. The largest takes 7 GB, page tables included.
.PHONY: prove-million
prove-million: setup ##prove A million actors, idle and parked
	@for actors in a_million_actors_with_a_state a_million_actors_with_a_stack ten_thousand_parked_actors; do \
	  RUST_BACKTRACE=0 cargo test --locked --quiet --release -p thalweg-runtime --test million -- \
	    --include-ignored --nocapture "$$actors"; \
	done

# Tests another processor's memory model, alignment and calling convention.
.PHONY: prove-aarch64
prove-aarch64: setup-prove ##prove 64-bit Arm under qemu
	@scripts/prove-aarch64.sh

# The runtime with its own stacks; corosensei reports their switches to AddressSanitizer. Faults belong to the tests here, so
# the sanitizer does not handle them.
.PHONY: prove-asan
prove-asan: setup ##prove AddressSanitizer over the runtime with its own stacks
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/asan-runtime RUSTFLAGS="-Zsanitizer=address" RUST_BACKTRACE=0 \
	ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:allow_user_segv_handler=1:use_sigaltstack=0 \
	LSAN_OPTIONS=suppressions=$(CURDIR)/crates/runtime/tests/leaks.supp \
	  cargo +$(NIGHTLY) test --locked --target x86_64-unknown-linux-gnu -p thalweg-runtime -p thalweg-patterns --features thalweg-runtime/sanitizer --tests --no-fail-fast

# Fuzzes outside input with libFuzzer, starting from the corpus, FUZZ_SECONDS for each target.
FUZZ_SECONDS ?= 600
.PHONY: prove-fuzz
prove-fuzz: setup ##prove Fuzz each target for FUZZ_SECONDS= (default 600)
	@if rustup run $(NIGHTLY) rustc --version >/dev/null 2>&1; then scripts/prove-fuzz.sh "$(FUZZ_SECONDS)" $(NIGHTLY); \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY)"; fi

# SOAK_ROUNDS rounds of opening and closing, in C and in Python, and GUEST_SOAK_ROUNDS with two guests.
SOAK_ROUNDS ?= 1000000
GUEST_SOAK_ROUNDS ?= 10000
.PHONY: prove-soak
prove-soak: setup ##prove A million rounds of opening and closing, in C and Python; guests 10,000 times
	bindings/c/test.sh soak "$(SOAK_ROUNDS)"
	bindings/c/test.sh guest-soak "$(GUEST_SOAK_ROUNDS)"
	THALWEG_SOAK="$(SOAK_ROUNDS)" bindings/python/test.sh -s bindings/python/tests/test_soak.py

# HOSTILE_MESSAGES uses of the functions of tw_guest_core.
HOSTILE_MESSAGES ?= 1000000
.PHONY: prove-hostile
prove-hostile: setup ##prove A guest that misbehaves at random, also with AddressSanitizer
	scripts/prove-hostile.sh "$(HOSTILE_MESSAGES)" $(NIGHTLY)

# RELOAD_SECONDS reloads of a guest in C and of one in C++, one in each second.
RELOAD_SECONDS ?= 60
.PHONY: prove-reload
prove-reload: setup ##prove Reload guests under load: no call fails or is lost, and memory does not grow
	bindings/c/test.sh reload "$(RELOAD_SECONDS)"
	bindings/cpp/test.sh reload "$(RELOAD_SECONDS)"

# One minute for each of two kinds of load, in both modes.
.PHONY: prove-nginx
prove-nginx: setup-prove ##prove Reload nginx under load: no request is lost, and memory does not grow
	@if $(HAVE_NGINX); then set -x; scripts/build-services.sh; scripts/generate.sh; scripts/build-guests.sh; bindings/lua/build.sh; \
	  .venv/bin/python bindings/lua/tests/prove_reload.py; \
	else scripts/skip.sh $@ "nginx with libnginx-mod-http-lua is not installed"; fi

# The services in every language with the hosts in every language.
.PHONY: prove-guests
prove-guests: setup ##prove The conformance scenarios with every guest and every host
	@if $(HAVE_NODE) && $(HAVE_NGINX) && $(HAVE_GO) && command -v nim >/dev/null; then set -x; cargo build --locked --workspace --bin thalweg --test this_workspace; \
	  "$(CARGO_TARGET_DIR)/debug/thalweg" conformance --guests --check; \
	else scripts/skip.sh $@ "Node 20 or newer with npm, nginx with libnginx-mod-http-lua, or Nim is not installed"; fi

# Ten million calls of eight threads with random cancels, closes and deadlines: each ends once.
.PHONY: prove-calls
prove-calls: setup ##prove Ten million calls with random cancels, closes and deadlines
	RUST_BACKTRACE=0 THALWEG_CALLS=10000000 cargo test --locked --release -p thalweg-port --test races

# A million supervision trees with random faults. A failure prints its seed.
.PHONY: prove-trees
prove-trees: setup ##prove A million random supervision trees
	RUST_BACKTRACE=0 THALWEG_TREES=1000000 THALWEG_TEST_SEED=$$(date +%s) \
	  cargo test --locked --release -p thalweg-runtime --test trees_at_random

# FAULTS= chooses by words: OPERATION RESOURCE SHAPE NTH MODE (tests/faults/README.md).
FAULTS ?=
export FAULTS
.PHONY: prove-faults
prove-faults: setup ##prove Refuse every Nth resource of every operation
	THALWEG_FAULTS="$$FAULTS" cargo test --locked -p thalweg-faults --test shortages -- --ignored --nocapture

# One minute for each flavour of channel. A failure prints its seed.
.PHONY: prove-random
prove-random: setup ##prove Random operations on every channel, beside a model
	THALWEG_TEST_SECONDS=60 THALWEG_TEST_SEED=$$(date +%s) \
	  cargo test --locked --release -p thalweg-queue --test channels -- model:: random::
	THALWEG_TEST_MUTATIONS=10000000 THALWEG_TEST_SEED=$$(date +%s) \
	  cargo test --locked --release -p thalweg-wire --test wire -- mutated
