# Every target sets up what it needs: Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEED ?= 1
# A seed that was named is run alone, unless a count was named too.
SEEDS ?= $(if $(filter command line environment,$(origin SEED)),1,200)
MINUTES ?= 10
MOMENTS ?= 12
ARGS ?=
WORKERS ?= 2

SQLGLOT = $(shell sed -n 's/^sqlglot==//p' constraints.txt)

.PHONY: help demo demo-spark demo-raw test test-pure test-system check format bench serve sim sim-long transfers mutants screenshots fuzz soak audit sbom clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Tailrace needs Python 3.11 or newer; set PYTHON=") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed ## a day of real flights into a DuckDB mirror, unlocked and locked
	$(BIN)/tailrace demo $(ARGS)

demo-spark: $(VENV)/installed ## the same day into a Parquet lake, by Spark
	$(BIN)/tailrace demo --spark $(ARGS)

demo-raw: $(VENV)/installed ## a raw keyspace replicated over a slow link, everything killed
	$(BIN)/tailrace demo --raw $(ARGS)

test: $(VENV)/installed ## the tests that need Python alone
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m 'not system' $(ARGS)

test-pure: $(VENV)/installed ## the SQL tests on sqlglot in Python alone, as where it has no wheel
	$(BIN)/python -m pip install --quiet --upgrade --no-deps --target $(VENV)/pure sqlglot==$(SQLGLOT)
	PYTHONPATH=$(VENV)/pure $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m 'not system' tests/sql $(ARGS)

test-system: $(VENV)/installed ## the tests that start whole processes and other programs
	$(BIN)/python -m tests.system.programs
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m system $(ARGS)

check: $(VENV)/installed ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed ## rewrite to the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed ## every benchmark, each ending in one line of JSON
	$(BIN)/python -m benchmarks $(ARGS)

serve: $(VENV)/installed ## a server on ./data, loopback only
	$(BIN)/tailrace serve ./data $(ARGS)

sim: $(VENV)/installed ## simulations: SEEDS of them, or again the one seed SEED
	$(BIN)/python -m tests.simulation --seed $(SEED) --seeds $(SEEDS) $(ARGS)

transfers: $(VENV)/installed ## two servers hand a keyspace to one another, and are killed at MOMENTS
	$(BIN)/python -m tests.system.transfers --moments $(MOMENTS) --seed $(SEED) $(ARGS)

sim-long: $(VENV)/installed ## simulations of new seeds for MINUTES
	$(BIN)/python -m tests.simulation --minutes $(MINUTES) $(ARGS)

mutants: $(VENV)/installed ## break each promise, and see the test that is named for it fail
	$(BIN)/python -m tests.mutants $(ARGS)

screenshots: $(VENV)/installed ## the README's pictures, out of a real browser
	$(BIN)/python -m tests.system.programs
	$(BIN)/python -m tests.system.screenshots $(ARGS)

fuzz: $(VENV)/installed ## 100,000 damaged messages at each door, in each state of authentication
	$(BIN)/python -m tests.fuzz --seed $(SEED) $(ARGS)

soak: $(VENV)/installed ## good clients and feeds beside abusers, for MINUTES (30)
	$(BIN)/python -m tests.soak --minutes $(if $(filter command line environment,$(origin MINUTES)),$(MINUTES),30)

audit: $(VENV)/supply ## known vulnerabilities of what is installed, by the databases of PyPI
	$(VENV)/supply/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict

sbom: $(VENV)/supply ## a bill of materials of a plain installation: build/tailrace.cdx.json
	$(PYTHON) -m venv --clear $(VENV)/shipped
	$(VENV)/shipped/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt .
	mkdir -p build
	$(VENV)/supply/bin/cyclonedx-py environment $(VENV)/shipped --output-file build/tailrace.cdx.json

$(VENV)/supply: constraints.txt
	$(PYTHON) -m venv --clear $(VENV)/supply
	$(VENV)/supply/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0

clean: ## remove what make made
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
