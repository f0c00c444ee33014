# Everything runs in a separate virtual environment, .venv, with the versions in requirements.lock and Cargo.lock.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# The Python that makes .venv; anything from 3.11 on.
PYTHON ?= python3
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin

# maturin builds into the environment that VIRTUAL_ENV names: ours, whatever the shell has activated. Neither must
# another environment's packages or settings reach in.
export VIRTUAL_ENV := $(VENV)
unexport PYTHONHOME
unexport PYTHONPATH
unexport PYTHONDONTWRITEBYTECODE
unexport CONDA_PREFIX

CORE_SOURCES := $(shell find crates -type f \( -name '*.rs' -o -name Cargo.toml \)) Cargo.toml Cargo.lock pyproject.toml
SCRIPTS := src tests tools experiments bench fuzz/text fidelity
STUDY := one-percent-loss

.PHONY: help demo quick test check format hooks wheel fuzz bench bench-instructions bench-ns3 fidelity web docs lab setup kernel clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' Makefile

demo: setup  ## Set up, run the one-percent-loss study (shortened) and print where its report is
	$(BIN)/sawtooth run $(STUDY)

# Tests are selected by the marks of their fixtures, tests/conftest.py. Tests in real time run alone on the machine.
QUICK := not (guest or browser or netns or wheel or npm or lab or slow)

quick: setup  ## Run the tests that need only this machine's processors, in parallel; about a minute
	cargo test --quiet --locked --profile checked --workspace --exclude sawtooth-python --exclude sawtooth-fuzzing --lib --tests
	$(BIN)/python -m pytest --quiet --numprocesses auto --dist loadfile -m "$(QUICK)"

# A test that fails in parallel runs once more alone. If it passes then, it is flaky, and the summary names it.
ALONE := $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -rA

test: setup kernel  ## Set up, build the user-mode kernel, and run all tests, of Rust and of Python
	cargo test --locked --profile checked --workspace --exclude sawtooth-python
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m "not netns" || $(ALONE)
	$(BIN)/python -m pytest -m netns

check: setup  ## Check format, lint, types, and the core's stub against the built core
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check $(SCRIPTS)
	$(BIN)/ruff check $(SCRIPTS)
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sawtooth._core

format:  ## Format all sources
	cargo fmt --all
	$(BIN)/ruff format $(SCRIPTS)
	$(BIN)/ruff check --fix $(SCRIPTS)

hooks:  ## Install a hook that checks format and lint of staged files before each commit
	git config core.hooksPath tools/hooks

wheel: setup lab  ## Build dist/: the source distribution, and from it a wheel for Linux from 2014 on; try it
	tools/wheel

FUZZ_SECONDS := 3600
fuzz: setup  ## Fuzz every reader of text and every Rust target, an hour each (FUZZ_SECONDS=60: a minute)
	cargo run --locked --profile checked -p sawtooth-fuzzing -- --seconds $(FUZZ_SECONDS) --seed $$(date +%s)
	$(BIN)/python -m fuzz.text --seconds $(FUZZ_SECONDS) --seed $$(date +%s) --keep target/fuzz

bench:  ## Measure delivered data packets per CPU second
	cargo run --locked --release -p sawtooth-net --example bench

bench-instructions:  ## Compare instructions per packet with the recorded ones; needs valgrind
	cargo run --locked --release -p sawtooth-net --example bench -- --instructions

bench-ns3: setup kernel target/ns3/bulk  ## Compare with ns-3: speed, and distance to the kernel; half an hour
	$(BIN)/python bench/side_by_side.py --ns3 target/ns3/bulk --output results/ns-3

fidelity: setup  ## Compare the simulator with the real kernel's record on the whole grid of scenarios
	$(BIN)/sawtooth compare --grid fidelity/grid.toml --out results/fidelity

web: setup  ## Build the pages' drawing code from web/ with npm; the result is committed
	$(BIN)/python tools/palette.py
	cd web && npm ci --no-audit --no-fund && npm run --silent check && npm run --silent build

kernel: setup  ## Build the user-mode kernel if it is not in the cache; a few minutes
	tools/laboratory
	$(BIN)/sawtooth kernel build

docs: setup  ## Build the documentation as a site in target/docs, with the laboratory if `make lab` built it
	test -x target/docs-environment/bin/sphinx-build || $(PYTHON) -m venv --clear target/docs-environment
	target/docs-environment/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	rm -rf target/docs
	target/docs-environment/bin/sphinx-build --quiet --fail-on-warning -b html docs target/docs
	if ls src/sawtooth/lab/built/*.wasm.gzip >/dev/null 2>&1; then $(BIN)/sawtooth lab --export target/docs/lab; fi
	@echo "make: built $(CURDIR)/target/docs/index.html"

lab: setup  ## Build the page of `sawtooth lab`; needs node, npm's registry, and a compiler for WebAssembly
	$(BIN)/python tools/lab.py

setup: $(VENV)/.core  ## Create .venv and build the optimized core into it, if needed

clean:  ## Remove .venv and everything built; results stay
	rm -rf $(VENV) target dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f src/sawtooth/_core*.so

target/ns3/bulk: $(wildcard bench/ns3/*)
	bench/ns3/prerequisites
	mkdir -p $(@D)
	g++ -std=c++17 -O3 -DNDEBUG -Wall -Wextra -o $@ $(filter %.cc,$^) -lns3-internet -lns3-network -lns3-core

$(VENV)/.packages: requirements.lock tools/prerequisites
	PYTHON="$(PYTHON)" tools/prerequisites
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

$(VENV)/.core: $(VENV)/.packages $(CORE_SOURCES)
	$(BIN)/maturin develop --release --locked
	touch $@
