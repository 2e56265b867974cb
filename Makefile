# Every target does its own set-up: a virtualenv in .venv, dependencies, the native build.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TOOLS  := $(VENV)/.tools
PLAIN  := $(VENV)/.plain
STAMP  := $(VENV)/.ready
NATIVE := $(VENV)/.native
PEERS  := $(VENV)/.peers
N      ?= 20000
MINUTES ?= 5
SEEDS  ?= 500
MINORS ?=
PYTHONS ?= $(PYTHON)

.DEFAULT_GOAL := help
.PHONY: help demo test lint types format build test-spark test-rest test-minors test-matrix wheel oracle torture simulate bench bench-check bench-short docs clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(TOOLS):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; say which with PYTHON=python3.12"; exit 1; }
	@command -v $(CC) > /dev/null || { echo "a C compiler is needed (Debian, Ubuntu: apt install build-essential python3-dev)"; exit 1; }
	@echo "== virtualenv"
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip "setuptools>=77" wheel "cython>=3.1,<4"
	@touch $@

$(STAMP): $(TOOLS) pyproject.toml
	@echo "== dependencies of the tests"
	@$(BIN)/python tests/requirements.py > $(VENV)/requirements.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/requirements.txt
	@touch $@

$(NATIVE): $(TOOLS) setup.py $(wildcard pyx/*/*)
	@echo "== native kernels (a minute or two on two cores)"
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

$(PLAIN): $(TOOLS) pyproject.toml
	@echo "== dependencies and PySpark"
	@$(BIN)/python tests/requirements.py spark > $(VENV)/requirements-spark.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/requirements-spark.txt
	@touch $@

build: $(NATIVE) $(STAMP) ## compile the Cython kernels in place

demo: $(TOOLS) ## write, search and explain a table
	@$(MAKE) --no-print-directory --jobs 2 $(NATIVE) $(PLAIN)
	@$(BIN)/python examples/demo.py

lint: $(NATIVE) $(STAMP) ## ruff, cython-lint, mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cython-lint pyx
	$(BIN)/mypy

test: lint $(PEERS) ## lint, types, every test, every benchmark on small data
	@echo "== tests, two runs side by side; each prints when it is done (ten to fifteen minutes)"
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target test-rest test-spark test-minors bench-short

test-spark: $(NATIVE) $(STAMP)
	$(BIN)/python -m pytest tests/spark

test-rest: $(NATIVE) $(STAMP)
	$(BIN)/python -m pytest tests --ignore tests/spark

test-minors: $(NATIVE) $(STAMP) ## a short proof on every other minor of Spark
	$(BIN)/python tests/release/matrix.py --smoke

test-matrix: $(NATIVE) $(STAMP) ## the Spark tests on every minor of Spark (MINORS="4.0 4.2"), docs/compatibility.md
	$(BIN)/python tests/release/matrix.py $(MINORS)

wheel: $(TOOLS) ## wheels for PYTHONS, repaired, and tried in an empty virtualenv without a compiler
	@$(BIN)/python tests/requirements.py release > $(VENV)/requirements-release.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/requirements-release.txt
	$(BIN)/python tests/release/wheels.py $(PYTHONS)

oracle: $(NATIVE) $(STAMP) ## pruned rows against all rows, N random pairs
	$(BIN)/python tests/planner/run_oracle.py $(N)

$(PEERS): $(STAMP)
	@$(BIN)/python tests/requirements.py bench > $(VENV)/requirements-bench.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/requirements-bench.txt
	@touch $@

bench: $(NATIVE) $(PEERS) ## benchmarks against the peers, RESULTS.md and plots
	$(BIN)/python bench/run.py $(SUITES)

bench-check: $(NATIVE) $(PEERS) ## fails when a ratio lost more than 20 %
	$(BIN)/python bench/run.py --check $(SUITES)

bench-short: $(NATIVE) $(PEERS) ## every suite on small data: answers, not figures
	BENCH_SHORT=1 $(BIN)/python -m pytest -q --no-header bench

torture: $(NATIVE) $(STAMP) ## random writers, crashes and lost replies against a model
	$(BIN)/python tests/torture/run_torture.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

simulate: $(NATIVE) $(STAMP) ## whole stories, interleaved at every store call, against a model (SEEDS=500, SEED=n replays one)
	$(BIN)/python tests/simulation/run.py --seeds $(SEEDS) $(if $(SEED),--seed $(SEED))

docs: $(STAMP) ## the documentation as a site in site/
	@$(BIN)/python tests/requirements.py docs > $(VENV)/requirements-docs.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/requirements-docs.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

clean: ## remove everything that a build made
	rm -rf $(VENV) .venvs build dist wheelhouse site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name '*.so' -path '*/native/*' -delete
