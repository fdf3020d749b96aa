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
LOOM := CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/loom RUSTFLAGS="--cfg loom" cargo test --locked --release
MIRI := CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/miri cargo +$(NIGHTLY) miri test --locked

LINTS := lint-rust lint-docs lint-aarch64 lint-c lint-python lint-shell lint-generated lint-text lint-unsafe
TESTS := test-rust test-loom test-miri test-c test-python test-sanitizers

##@ Use

.PHONY: help
help: ## Say what there is
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Check the toolchains and install what is missing (the others do so as they need it)
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh test

.PHONY: setup-build
setup-build:
	@[ "$${SETUP_DONE:-}" = yes ] || scripts/setup.sh build

.PHONY: build
build: build-search ## Build the libraries, the command, the Python package, the example and the lab
	cargo build --locked --release -p thalweg-cli -p thalweg-bench -p thalweg-lab

# What `make run` runs.
.PHONY: build-search
build-search: build-python
	cargo build --locked --release -p thalweg-search -p thalweg-search-rust -p thalweg-search-run
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

.PHONY: bench
bench: build ## Measure what each part costs
	@"$(RELEASE)/thalweg" bench run

.PHONY: clean
clean: ## Remove all that was built and installed here
	cargo clean --quiet
	rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache

##@ Test

.PHONY: test
test: setup ## Everything that CI runs: lint, then every test
	@SETUP_DONE=yes scripts/steps.sh test $(LINTS) $(TESTS)

.PHONY: lint
lint: setup ## Formatters, linters, documentation, generated code up to date
	@SETUP_DONE=yes scripts/steps.sh lint $(LINTS)

.PHONY: prove
prove: setup ## What takes longer: loom at bound 3, Miri over more, ThreadSanitizer
	@SETUP_DONE=yes scripts/steps.sh prove prove-loom prove-miri prove-tsan

# --- Lint -----------------------------------------------------------------------------------------

.PHONY: lint-rust
lint-rust: setup
	cargo fmt --all -- --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo bench --locked --workspace --no-run

.PHONY: lint-docs
lint-docs: setup
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

.PHONY: lint-aarch64
lint-aarch64: setup
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu" ]; then set -x; \
	  cargo check --locked --target aarch64-unknown-linux-gnu -p thalweg-queue -p thalweg-wire -p thalweg-runtime -p thalweg-port; \
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

.PHONY: lint-generated
lint-generated: setup
	cargo run --locked -q -p thalweg-cli -- gen --check

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

.PHONY: test-loom
test-loom: setup
	LOOM_MAX_PREEMPTIONS=2 $(LOOM) -p thalweg-queue --test 'loom*'

# Where the unsafe code is; wire has none, and port's is in what its unit tests reach without a stack switch.
.PHONY: test-miri
test-miri: setup
	@if cargo +$(NIGHTLY) miri --version >/dev/null 2>&1; then set -x; \
	  $(MIRI) -p thalweg-queue -p thalweg-port --lib; \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY) with Miri"; fi

.PHONY: test-c
test-c: setup
	bindings/c/test.sh
	conformance/c/test.sh

.PHONY: test-python
test-python: setup
	bindings/python/test.sh

.PHONY: test-sanitizers
test-sanitizers: setup
	@if rustup run $(NIGHTLY) rustc --version >/dev/null 2>&1; then scripts/test-sanitizers.sh $(NIGHTLY); \
	else scripts/skip.sh $@ "rustup has no $(NIGHTLY)"; fi

# --- Proofs ---------------------------------------------------------------------------------------

.PHONY: prove-loom
prove-loom: setup
	LOOM_MAX_PREEMPTIONS=3 $(LOOM) -p thalweg-queue --test 'loom*'

.PHONY: prove-miri
prove-miri: setup
	MIRIFLAGS="-Zmiri-many-seeds=0..16" $(MIRI) -p thalweg-queue --lib
	$(MIRI) -p thalweg-wire

# ThreadSanitizer must see the standard library too, so that is built with it.
.PHONY: prove-tsan
prove-tsan: setup
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/tsan RUSTFLAGS="-Zsanitizer=thread" \
	  cargo +$(NIGHTLY) test --locked -Zbuild-std --target x86_64-unknown-linux-gnu \
	    -p thalweg-queue -p thalweg-runtime -p thalweg-port --tests
