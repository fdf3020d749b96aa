# Everything a person or CI does with this repository. `make` alone says what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# rustup writes itself into the shell's profile, which CI's shells may not read.
export PATH := $(CURDIR)/.venv/bin:$(HOME)/.cargo/bin:$(PATH)
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export PYTHONDONTWRITEBYTECODE := 1
# What a target builds it builds whole: to note down how a part is built again takes longer than it ever saves here.
export CARGO_INCREMENTAL ?= 0
RELEASE := $(CARGO_TARGET_DIR)/release
# What was asked for goes to the shell as it was typed: make does not look for its own variables in it. No pattern
# is not the empty pattern.
ifneq ($(origin PATTERN),undefined)
override PATTERN := $(value PATTERN)
WITH_PATTERN := --pattern "$$PATTERN"
endif
override DIR := $(value DIR)
export DIR PATTERN

NIGHTLY := $(shell cat scripts/nightly-version)
# What a build sets apart gets a folder of its own, so that it does not throw the others' work away.
LOOM := env CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/loom RUSTFLAGS="--cfg loom" cargo test --locked --profile loom
# To find the places of a backtrace takes Miri seconds, for each panic of a test.
MIRI := RUST_BACKTRACE=0 CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/miri cargo +$(NIGHTLY) miri test --locked

LINTS := lint-rust lint-docs lint-aarch64 lint-c lint-python lint-shell lint-generated lint-text lint-unsafe
TESTS := test-rust test-loom test-miri test-c test-python test-conformance test-sanitizers test-instructions

##@ Use

.PHONY: help
help: ## Say what there is
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Check the toolchains and install what is missing (the others do so as they need it)
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh test

.PHONY: setup-prove
setup-prove:
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh prove

.PHONY: setup-build
setup-build:
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh build

SEARCH := -p thalweg-search -p thalweg-search-rust -p thalweg-search-run

# In one go: what cargo builds together shares its features, and what it builds apart makes the other out of date.
.PHONY: build
build: build-python build-c ## Build the libraries, the command, the Python package, the example and the lab
	cargo build --locked --release $(SEARCH) -p thalweg-cli -p thalweg-bench -p thalweg-lab

# What `make run` runs.
.PHONY: build-search
build-search: build-python build-c
	cargo build --locked --release $(SEARCH)

.PHONY: build-c
build-c: setup-build
	@mkdir -p "$(RELEASE)"
	@$(CC) -std=c99 -O2 -Wall -Ibindings/c/include -Iexamples/search/generated/c \
	  examples/search/hosts/c/search.c -o "$(RELEASE)/search-c" -ldl

.PHONY: build-python
build-python: setup-build
	bindings/python/build.sh

.PHONY: run
run: build-search ## Search a directory from Rust, C and Python and compare: DIR= PATTERN= choose
	@"$(RELEASE)/search-run" --library "$(RELEASE)/libthalweg_search.so" --rust "$(RELEASE)/search-rust" \
	  --c "$(RELEASE)/search-c" --python .venv/bin/python --script examples/search/hosts/python/search.py \
	  --dir "$$DIR" $(WITH_PATTERN)

.PHONY: clean
clean: ## Remove all that was built and installed here
	cargo clean --quiet
	rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache

##@ Measure

# What of a word is not a name or a number goes to the shell as one word, too.
export NAMES HOURS SAN
HOURS ?= 1
SAN ?= asan
BENCH := "$(RELEASE)/thalweg" bench

.PHONY: bench
bench: build ## Measure what each part costs: NAMES="spsc_threads mpsc" chooses
	@$(BENCH) run $$NAMES

.PHONY: bench-all
bench-all: build ## Everything but the endurance runs, and the report of it in benchmarks/reports
	@$(BENCH) report $(addprefix --group ,queue boundary streaming runtime nginx stress)

.PHONY: bench-stress
bench-stress: build ## Two threads try and try again, up to 10 million messages a run
	@$(BENCH) run stress --set full=yes

.PHONY: bench-endurance
bench-endurance: build ## For leaks and drift: HOURS= says how long (1)
	@$(BENCH) run --group endurance --duration "$${HOURS}h" --json "benchmarks/reports/endurance_$$(date -u +%Y%m%dT%H%M%SZ).json"

.PHONY: bench-peers
bench-peers: setup-build ## Build the peers that Python loads: PyO3 and UniFFI
	crates/bench/peers/python/build.sh

.PHONY: bench-info
bench-info: build ## What on this machine speaks against measuring
	@$(BENCH) doctor

.PHONY: results
results: ## The results that are committed
	@git ls-files 'benchmarks/results/*/table.md' | while read -r table; do \
	  printf '\n%s\n\n' "$$(dirname "$$table")"; cat "$$table"; done

.PHONY: clean-results
clean-results: ## Remove benchmarks/reports; what is committed stays
	rm -rf benchmarks/reports

# The gate is judged from four processors up; where it is not, that is no pass, and in CI a failure.
.PHONY: gate
gate: build ## Submission must scale with its producers: 1.5 x at least
	@status=0; THALWEG_SCALING_GATE=1 $(BENCH) run ffi_submit --enforce || status=$$?; \
	if [ "$$status" = 2 ]; then scripts/skip.sh $@ "it was not judged; what it says is above"; else exit "$$status"; fi

.PHONY: san
san: setup-build ## Submission under a sanitizer: SAN= asan, lsan or tsan
	@crates/bench/sanitizer.sh "$$SAN" $(NIGHTLY)

##@ Test

.PHONY: test
test: setup ## Everything that CI runs: lint, then every test
	@SETUP_DONE=yes scripts/steps.sh test $(LINTS) $(TESTS)

.PHONY: lint
lint: setup ## Formatters, linters, documentation, generated code up to date
	@SETUP_DONE=yes scripts/steps.sh lint $(LINTS)

.PHONY: prove
prove: setup-prove ## What takes longer: loom at bound 3, Miri, ThreadSanitizer and AddressSanitizer over more, a million actors, a million trees, 64-bit Arm, long random runs, fuzzing, a million rounds of opening and closing
	@SETUP_DONE=yes scripts/steps.sh prove prove-loom prove-miri prove-tsan prove-asan prove-million prove-aarch64 prove-trees prove-random prove-fuzz prove-soak

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
	  RUSTFLAGS="-D warnings" cargo check --locked --target aarch64-unknown-linux-gnu -p thalweg-queue -p thalweg-wire -p thalweg-runtime -p thalweg-port; \
	else scripts/skip.sh $@ "Rust's target aarch64-unknown-linux-gnu is not installed"; fi

.PHONY: lint-c
lint-c: setup
	git ls-files -z '*.c' '*.h' ':!*/generated/*' ':!*/golden/*' | xargs -0 clang-format --dry-run -Werror

.PHONY: lint-python
lint-python: setup
	ruff format --check
	ruff check
	mypy

.PHONY: lint-shell
lint-shell: setup
	git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck

# Built as `test-rust` builds it, of the whole workspace's features and a test's, so that neither builds it again for itself.
.PHONY: lint-generated
lint-generated: setup
	cargo build --locked --workspace --bin thalweg --test this_workspace
	"$(CARGO_TARGET_DIR)/debug/thalweg" gen --check

.PHONY: lint-text
lint-text: setup
	scripts/check-text.sh

.PHONY: lint-unsafe
lint-unsafe: setup
	scripts/test-unsafe-lint.sh

# --- Tests ----------------------------------------------------------------------------------------

.PHONY: test-rust
test-rust: setup
	cargo test --locked --workspace --no-fail-fast
	cargo run --locked --profile abort -p thalweg-abort

.PHONY: test-loom
test-loom: setup
	LOOM_MAX_PREEMPTIONS=2 $(LOOM) -p thalweg-queue -p thalweg-runtime -p thalweg-port --lib --test loom

# Where the unsafe code is; wire has none, and port's is in what its unit tests reach. Each actor is a thread there: Miri cannot
# switch stacks. It interprets on one processor: what takes longest comes first.
.PHONY: test-miri
test-miri: setup
	@if cargo +$(NIGHTLY) miri --version >/dev/null 2>&1; then \
	  cargo +$(NIGHTLY) miri setup --quiet; \
	  scripts/side-by-side.sh \
	    "$(MIRI) -p thalweg-port --lib" \
	    "$(MIRI) -p thalweg-queue --test channels -- oneshot:: drops::each::spsc:: drops::each::mpmc::" \
	    "$(MIRI) -p thalweg-runtime --test actors" \
	    "$(MIRI) -p thalweg-queue --lib"; \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY) with Miri"; fi

.PHONY: test-c
test-c: setup
	bindings/c/test.sh

.PHONY: test-python
test-python: setup
	bindings/python/test.sh

# Of the reports that the three before leave.
.PHONY: test-conformance
test-conformance: setup
	cargo build --locked --workspace --bin thalweg --test this_workspace
	"$(CARGO_TARGET_DIR)/debug/thalweg" conformance --no-run --check

.PHONY: test-sanitizers
test-sanitizers: setup
	@if rustup run $(NIGHTLY) rustc --version >/dev/null 2>&1; then scripts/test-sanitizers.sh $(NIGHTLY); \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY)"; fi

.PHONY: test-instructions
test-instructions: setup
	crates/bench/instructions.sh --check

# --- Proofs ---------------------------------------------------------------------------------------

# LOOM_SECONDS for each model: some take hours at bound 3. Which were cut off stands at the end of what it prints; test-loom explores
# each to its end, with a preemption less.
LOOM_SECONDS ?= 200
export LOOM_SECONDS
.PHONY: prove-loom
prove-loom: setup
	@scripts/prove-loom.sh "$$LOOM_SECONDS" $(LOOM)

.PHONY: prove-miri
prove-miri: setup
	MIRIFLAGS="-Zmiri-many-seeds=0..16" $(MIRI) -p thalweg-queue --lib
	$(MIRI) -p thalweg-queue --test channels -- oneshot:: drops:: closing::
	$(MIRI) -p thalweg-wire
	$(MIRI) -p thalweg-runtime --lib --test actors --test breakers --test bulkheads --test joining --test rate_limits --test sync --test sync_endings --test sync_stress
	MIRIFLAGS="-Zmiri-disable-isolation" $(MIRI) -p thalweg-runtime --test exits --test groups --test supervisors_restarting
	MIRIFLAGS="-Zmiri-tree-borrows" $(MIRI) -p thalweg-runtime --test actors --test joining --test sync --test sync_endings --test sync_stress

# ThreadSanitizer must see the standard library too, so that is built with it. Each actor is a thread there: it cannot follow a
# switch of stacks. A test asks for more memory than there is: that is its own to handle.
.PHONY: prove-tsan
prove-tsan: setup
	TSAN_OPTIONS=allocator_may_return_null=1 CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/tsan RUSTFLAGS="-Zsanitizer=thread --cfg thalweg_threads" \
	  cargo +$(NIGHTLY) test --locked -Zbuild-std --target x86_64-unknown-linux-gnu \
	    -p thalweg-queue -p thalweg-runtime -p thalweg-port --tests --no-fail-fast

# Each in a process of its own: the figures are a whole process's. It takes 7 GB, page tables and all.
.PHONY: prove-million
prove-million: setup
	@for actors in a_million_actors_with_a_state a_million_actors_with_a_stack ten_thousand_parked_actors; do \
	  RUST_BACKTRACE=0 cargo test --locked --quiet --release -p thalweg-runtime --test million -- \
	    --include-ignored --nocapture "$$actors"; \
	done

# Another processor's memory model, alignment and calling convention.
.PHONY: prove-aarch64
prove-aarch64: setup-prove
	@scripts/prove-aarch64.sh

# The runtime with its own stacks, of whose switches corosensei tells AddressSanitizer. A fault is a test's own here, not the sanitizer's
# to report.
.PHONY: prove-asan
prove-asan: setup
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/asan-runtime RUSTFLAGS="-Zsanitizer=address" RUST_BACKTRACE=0 \
	ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:allow_user_segv_handler=1:use_sigaltstack=0 \
	LSAN_OPTIONS=suppressions=$(CURDIR)/crates/runtime/tests/leaks.supp \
	  cargo +$(NIGHTLY) test --locked --target x86_64-unknown-linux-gnu -p thalweg-runtime --features sanitizer --tests --no-fail-fast

# From the corpus on, with libFuzzer: what comes from outside, read by wire. Minutes each, FUZZ_SECONDS says how long.
FUZZ_SECONDS ?= 600
.PHONY: prove-fuzz
prove-fuzz: setup
	@if rustup run $(NIGHTLY) rustc --version >/dev/null 2>&1; then scripts/prove-fuzz.sh "$(FUZZ_SECONDS)" $(NIGHTLY); \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY)"; fi

# SOAK_ROUNDS of opening and closing, in C and in Python.
SOAK_ROUNDS ?= 1000000
.PHONY: prove-soak
prove-soak: setup
	bindings/c/test.sh soak "$(SOAK_ROUNDS)"
	THALWEG_SOAK="$(SOAK_ROUNDS)" bindings/python/test.sh -s bindings/python/tests/test_soak.py

# A million supervision trees with everything going wrong in them, from a seed that a failure names.
.PHONY: prove-trees
prove-trees: setup
	RUST_BACKTRACE=0 THALWEG_TREES=1000000 THALWEG_TEST_SEED=$$(date +%s) \
	  cargo test --locked --release -p thalweg-runtime --test trees_at_random

# A minute for each flavour, from a seed that a failure names.
.PHONY: prove-random
prove-random: setup
	THALWEG_TEST_SECONDS=60 THALWEG_TEST_SEED=$$(date +%s) \
	  cargo test --locked --release -p thalweg-queue --test channels -- model:: random::
