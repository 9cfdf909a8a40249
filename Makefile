# sfumato: `make demo` shows the whole job, `make test` checks everything. Both set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export SFUMATO_DATA ?= $(if $(wildcard ../shared/data),$(abspath ../shared/data))
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo check test slow bench docs clean

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfumato needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,sql]'
	$(BIN)/python -m sfumato.cli.warm
	@touch $@

demo: setup
	$(BIN)/sfumato demo -o demo --overwrite

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest -q -n 2 -m 'not slow'

slow: setup
	$(BIN)/pytest -q -m slow

bench: setup
	$(BIN)/pytest benchmarks/speed -q --import-mode=importlib -o python_files='bench_*.py' -o python_functions='bench_*' --benchmark-sort=name
	$(BIN)/python benchmarks/speed/grouping.py $(BENCH)
	$(BIN)/python benchmarks/papers/ay05.py

docs: setup
	$(BIN)/mkdocs build --quiet --strict --site-dir site
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) demo site .mypy_cache .ruff_cache .benchmarks .hypothesis
