# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Needs Python 3.11 or newer, make and git; everything else goes into the virtual environment VENV.
#
#   make demo   fit models to real data           make bench  compare the speed with PyTensor, JAX and NumPy
#   make test   lint, types, lit and pytest       make docs   the generated pages, and the site in build/site
#   make lint   ruff and import contracts         make fuzz   random programs for FUZZ_MINUTES, in every way
#   make types  mypy                              make clean  remove what these made
#   make release  wheels and sdists in dist/, installed and tried in bare environments of each Python there is
#   make conformance  run the tests of PyTensor and of the array API standard on graphc: SUITES=folder or CONFORMANCE_ARGS=--clone
#   make conformance-linked  PyTensor's own tests with PyTensor itself, compiled by graphc through the bridge
#   make conformance-pymc  PyMC's own tests in mode GRAPHC; what fails counts if it passes in PyTensor's default mode
#   make conformance-array-api  only the array API standard's tests
#   make conformance-clients  array-api-extra, SciPy and scikit-learn on tensors of immediate mode
#   make bridge  PyTensor's graphs and PyMC's models through graphc
#   make bridge-newest  the same with the newest PyTensor and PyMC, which need Python 3.12: PYTHON_NEWEST names one
#   make bench-pymc  PyMC's models on graphc, numba and JAX; bench-sampling samples some of them
#   make bench-artifacts  size and load time of artifacts, calls from Python and from C
#   make bench-cluster  tasks and bytes of Dask and Ray
#   make bench-growth  loops that write and read single rows, at three sizes, beside PyTensor and JAX
#   make long   for a night: fuzzing by time, conformance, leaks, benchmarks; docs/long-runs.md
#   make operation NAME=log1p   the tests of one operation, in a few seconds
#   make ulp    measure the accuracy of all functions, for docs/math.md
#
# PYTHON=python3.12 chooses the interpreter, DEMO_ARGS="--show-ir" passes options to the demos.

SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV ?= .venv
PEERS ?= .venv-peers
BRIDGE ?= .venv-bridge
BRIDGE_NEWEST ?= .venv-bridge-newest
BRIDGE_PYMC6 ?= .venv-bridge-pymc6
PYTHON_NEWEST ?= python3.13 python3.12 python3.14 $(lastword $(wildcard $(HOME)/.pyenv/versions/3.1[234].*/bin/python))
CLIENTS ?= .venv-clients
JOBS ?= 2
LIT_JOBS ?= $(JOBS)
FUZZ_EXAMPLES ?= 500
FUZZ_MINUTES ?= 30
FUZZ_RESULTS ?= results/fuzz
FUZZ_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
BRIDGE_ARGS ?=
ARRAY_API_ARGS ?=
LONG_ARGS ?=

BIN := $(VENV)/bin
# Tests of a file stay in one process where they can: they share what they compiled.
IN_JOBS := --quiet --numprocesses $(JOBS) --dist worksteal
PYTEST = $(BIN)/python -m pytest $(IN_JOBS)
CODE := compiler dialects runtime tools
# Tests start hundreds of processes: each would compile all sources it imports where bytecode is not kept.
export PYTHONDONTWRITEBYTECODE :=
# An installed copy is not needed to run the sources, and the sources win over one.
export PYTHONPATH := $(subst $() $(),:,$(addprefix $(CURDIR)/,$(CODE)))

.PHONY: help demo test lint types lit pytest tiers bench bench-pymc bench-sampling bench-compile bench-artifacts bench-cluster bench-growth long docs gallery release fuzz ulp format clean bridge bridge-newest conformance conformance-pytensor conformance-linked conformance-pymc conformance-quick conformance-array-api conformance-clients
help:
	@sed -n 's/^#   //p' Makefile

# --- environments: a stamp file for each set of extras, remade when pyproject.toml changes ---------------------------
# Bytecode is made of what is imported.

$(VENV)/pyvenv.cfg:
	@python=""; \
	for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python); do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; \
	  then python="$$candidate"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "make: no usable Python 3.11 to 3.14 found (tried $(or $(PYTHON),python3 and python3.11 to 3.14))." >&2; \
	  echo "make: install one with its venv module, or name one: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "creating $(VENV) with $$("$$python" --version)"; "$$python" -m venv $(VENV)

$(VENV)/.demo: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[demo]'
	@touch $@

$(VENV)/.test: $(VENV)/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[demo,test,docs]'
	@touch $@ $(VENV)/.demo

# So do PyTensor and PyMC, which need numba and with it an older llvmlite: the oldest that graphc takes.
$(BRIDGE)/.bridge: pyproject.toml $(VENV)/pyvenv.cfg
	$(BIN)/python -m venv $(BRIDGE)
	$(BRIDGE)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[test-bridge]'
	@touch $@

# The newest PyTensor for this Python, which PyMC 5 does not take.
$(BRIDGE_NEWEST)/.bridge: pyproject.toml $(VENV)/pyvenv.cfg
	$(BIN)/python -m venv $(BRIDGE_NEWEST)
	$(BRIDGE_NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[pytensor]' 'pytest>=8'
	@touch $@

# PyMC 6 and the newest PyTensor, where there is a Python for them.
$(BRIDGE_PYMC6)/.bridge: pyproject.toml
	@for candidate in $(PYTHON_NEWEST); do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then \
	    echo "creating $(BRIDGE_PYMC6) with $$("$$candidate" --version)"; \
	    "$$candidate" -m venv $(BRIDGE_PYMC6) \
	      && $(BRIDGE_PYMC6)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[test-bridge]' \
	      && touch $@; exit; \
	  fi; \
	done; \
	echo "make: SKIPPED: no Python 3.12 or newer for the newest PyTensor (tried $(PYTHON_NEWEST)); name one: PYTHON_NEWEST=/path/to/python3" >&2

# The clients' list of failures holds for these versions of them.
$(CLIENTS)/.clients: tests/conformance/clients/requirements.txt pyproject.toml $(VENV)/pyvenv.cfg
	$(BIN)/python -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable . -r tests/conformance/clients/requirements.txt
	@touch $@

# The peers live in an environment of their own: PyTensor's numba needs another llvmlite than graphc.
$(PEERS)/.peers: tests/bench/peers.txt $(VENV)/pyvenv.cfg
	$(BIN)/python -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/bench/peers.txt
	@touch $@

# --- the daily commands ----------------------------------------------------------------------------------------------

demo: $(VENV)/.demo
	$(BIN)/python docs/examples/logistic_regression.py $(DEMO_ARGS)
	$(BIN)/python docs/examples/sunspots.py $(DEMO_ARGS)

test: static pytest tiers bridge

# What uses one core each, or waits for packages, side by side; what can use all of them comes last.
.PHONY: static
static: $(VENV)/pyvenv.cfg
	$(MAKE) --jobs 2 JOBS=1 LIT_JOBS=$(JOBS) types lint conformance-quick $(BRIDGE)/.bridge lit

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/lint-imports --config pyproject.toml

types: $(VENV)/.test
	$(BIN)/mypy

# NAME=log1p: the cases of one operation, its row, its gradient and its lit tests, in a few seconds: graphc-test.
.PHONY: operation
operation: $(VENV)/.test
	$(BIN)/python -m graphc_tools.one_operation $(NAME)

lit: $(VENV)/.test
	$(BIN)/lit --quiet --workers $(LIT_JOBS) tests/lit

pytest: $(VENV)/.test
	$(PYTEST) $(PYTEST_ARGS)

# The other ways into compiled functions, which machines with another Python layout use: what looks at calls.
TIER_TESTS := $(addprefix tests/unit/function/test_,donated_memory.py donation.py function.py lazy.py out_buffers.py \
  outputs_wanted.py python_ops.py robustness_threads.py robustness_updates.py shared.py tiered.py unused_inputs.py user_types.py)
# Each in one process, side by side: they wait for no second collection of tests.
tiers: $(VENV)/.test
	$(MAKE) --jobs $(JOBS) tier-buffer tier-python
tier-%: $(VENV)/.test
	GRAPHC_CALL_TIER=$* $(BIN)/python -m pytest --quiet $(TIER_TESTS)

# Random programs, evaluated in every way, in JOBS processes: a summary and scripts of what fails go to FUZZ_RESULTS.
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/mutated_artifacts.py
	$(BIN)/python tests/fuzz/campaign.py --minutes $(FUZZ_MINUTES) --jobs $(JOBS) --results $(FUZZ_RESULTS) $(FUZZ_ARGS)

# The tests with generated inputs, FUZZ_EXAMPLES for each of them.
.PHONY: fuzz-inputs
fuzz-inputs: $(VENV)/.test
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(PYTEST) -m fuzz $(PYTEST_ARGS)

# BRIDGE_ARGS="--models all" runs the whole catalogue of models.
BRIDGE_TESTS = OPENBLAS_NUM_THREADS=1 PYTENSOR_FLAGS=cxx= $(1)/bin/python -m pytest $(IN_JOBS) tests/interop \
  'tests/unit/test_readme.py::test_code_blocks_run[pymc.md]' $(BRIDGE_ARGS) && \
  $(1)/bin/python tests/conformance/linked.py --quick --jobs $(JOBS) --suites $(SUITES)
bridge: $(BRIDGE)/.bridge
	$(call BRIDGE_TESTS,$(BRIDGE))

# Not part of `make test`: takes minutes more, and an interpreter that not all machines have.
bridge-newest: $(BRIDGE_PYMC6)/.bridge
	@if [ -f $(BRIDGE_PYMC6)/.bridge ]; then $(call BRIDGE_TESTS,$(BRIDGE_PYMC6)); \
	else echo "bridge-newest: SKIPPED, nothing was run" >&2; fi

# BENCH_ARGS="--part arrays" measures a part: arrays, loops or fresh (processes); the page is written after the last.
bench: $(VENV)/.demo $(PEERS)/.peers
	$(BIN)/python tests/bench/run.py --peers-python $(PEERS)/bin/python $(BENCH_ARGS)

# PyMC's models on graphc, numba and JAX, in the newest versions: docs/benchmarks_pymc.md. Takes an hour.
bench-pymc: $(BRIDGE_PYMC6)/.bridge
	$(BRIDGE_PYMC6)/bin/python tests/bench/pymc_models.py --jobs $(JOBS) $(BENCH_ARGS)

# From model to posterior, with pm.sample and nutpie: docs/benchmarks_sampling.md. Takes half an hour.
bench-sampling: $(BRIDGE_PYMC6)/.bridge
	$(BRIDGE_PYMC6)/bin/python tests/bench/pymc_sampling.py

# What takes hours: fuzzing by time, conformance, leaks, benchmarks; docs/long-runs.md gets the figures.
# LONG_ARGS="--steps fuzz,leaks" runs some of it.
long: $(VENV)/.test $(PEERS)/.peers
	$(BIN)/python tests/long/run.py --minutes $(FUZZ_MINUTES) --jobs $(JOBS) --suites $(abspath $(SUITES)) \
	  --peers-python $(CURDIR)/$(PEERS)/bin/python $(LONG_ARGS)

bench-compile: $(VENV)/.demo
	$(BIN)/python tests/bench/compile_time.py

# Size and load time of artifacts, and calls of them from Python and from C, beside JAX and AOTInductor.
bench-artifacts: $(VENV)/.demo $(PEERS)/.peers
	$(BIN)/python tests/bench/artifacts.py --peers-python $(PEERS)/bin/python

# What tasks and bytes of a cluster cost: docs/guide/run-on-a-cluster.md.
bench-cluster: $(VENV)/.test
	$(BIN)/python tests/bench/cluster.py

# Programs whose work is sparse in a larger array: how their times grow.
bench-growth: $(VENV)/.demo $(PEERS)/.peers
	$(BIN)/python tests/bench/growth.py --peers-python $(PEERS)/bin/python $(BENCH_ARGS)

# The generated pages, then the site in build/site, which is read without a network or a server.
docs: $(VENV)/.test
	$(BIN)/python -m graphc_tools.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "the site is build/site/index.html"

# Ten pages of the site in headless Chromium: pictures in build/pages, contrast, sizes, searches. Takes a minute or two.
.PHONY: pages
pages: docs
	$(BIN)/python tests/release/pages.py build/site --pictures build/pages

# The plots of docs/gallery.md; takes a minute or two.
GALLERY := logistic_regression huber_regression sunspots trust_region hmc immediate_session char_rnn
gallery: $(VENV)/.test
	for name in $(GALLERY); do $(BIN)/python docs/examples/$$name.py --plot docs/gallery/$$name.png || exit 1; done

# Wheels and archives of the sources in dist/, of the tag's version; installed into bare environments of every Python from
# 3.11 to 3.14 that is on the path or in PYTHONS, from this folder too, with the newest packages and with the oldest that we
# claim to work with, and the runtime alone, on an emulated AArch64 too (Debian's qemu-user and debootstrap); what could not be tried is named at the end. With the sources on the path, pip would take these for installed.
RELEASE := build/release
PYTHONS ?=
release: export PYTHONPATH :=
release: $(VENV)/pyvenv.cfg
	rm -rf dist $(RELEASE) && mkdir -p $(RELEASE)
	$(BIN)/python -m venv $(RELEASE)/tools && $(RELEASE)/tools/bin/pip install --quiet --disable-pip-version-check build
	for folder in . runtime; do $(RELEASE)/tools/bin/python -m build --outdir dist $$folder || exit 1; done
	$(BIN)/python tests/release/environments.py --wheels dist --folder $(RELEASE) $(PYTHONS)
	$(BIN)/python tests/release/aarch64.py --wheels dist --model $$(ls $(RELEASE)/3.*/model.gcx | tail -1) \
	  --folder $(RELEASE)/aarch64

# Takes long; goes on where it stopped. CONFORMANCE_ARGS="--version 3.3.0 test_sort" chooses release and files.
SUITES ?= ../shared/suites
conformance: conformance-pytensor conformance-linked conformance-array-api conformance-clients
conformance-pytensor: $(VENV)/.test
	nice $(BIN)/python tests/conformance/run.py --suites $(SUITES) $(CONFORMANCE_ARGS)
# The suites of the PyTensor that PyMC takes and of the newest; takes an hour.
conformance-linked: $(BRIDGE)/.bridge $(BRIDGE_NEWEST)/.bridge
	nice $(BRIDGE)/bin/python tests/conformance/linked.py --suites $(SUITES) $(CONFORMANCE_ARGS)
	nice $(BRIDGE_NEWEST)/bin/python tests/conformance/linked.py --suites $(SUITES) $(CONFORMANCE_ARGS)
# Takes hours; PyPI's archives of PyMC's sources lack most tests, so that CONFORMANCE_ARGS=--clone clones the version
# that is installed, where SUITES has no folder pymc-vVERSION. CONFORMANCE_ARGS="logprob/ ode/" chooses files.
conformance-pymc: $(BRIDGE)/.bridge $(BRIDGE_PYMC6)/.bridge
	nice $(BRIDGE)/bin/python tests/conformance/linked.py pymc --suites $(SUITES) --jobs $(JOBS) $(CONFORMANCE_ARGS)
	@if [ -f $(BRIDGE_PYMC6)/.bridge ]; then \
	  nice $(BRIDGE_PYMC6)/bin/python tests/conformance/linked.py pymc --suites $(SUITES) --jobs $(JOBS) $(CONFORMANCE_ARGS); \
	else echo "PyMC 6 needs Python 3.12 or later, which is not here"; fi
conformance-quick: $(VENV)/.test
	$(BIN)/python tests/conformance/run.py --quick --jobs $(JOBS) --suites $(SUITES)

# The standard's own test suite on env.array_api; takes half an hour.
conformance-array-api: $(VENV)/.test
	nice $(BIN)/python tests/conformance/array_api.py --suites $(SUITES) --jobs $(JOBS) $(ARRAY_API_ARGS)

# Libraries that are written for the standard, on tensors of immediate mode; takes five minutes.
conformance-clients: $(CLIENTS)/.clients
	nice $(CLIENTS)/bin/python tests/conformance/clients.py $(CLIENTS_ARGS)

# The table of errors in docs/math.md; takes minutes.
ulp: $(VENV)/.test
	$(BIN)/python tests/numeric/ulp.py --write

format: $(VENV)/.test
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format --quiet

clean:
	rm -rf $(VENV) $(PEERS) $(BRIDGE) $(BRIDGE_NEWEST) $(BRIDGE_PYMC6) $(CLIENTS) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
