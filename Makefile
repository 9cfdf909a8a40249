# sfumato: `make demo` shows the whole job, `make test` checks everything. Both set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINE := .venv-parties
MUTATION := .venv-mutants
NOTEBOOKS := .venv-notebooks
SPARK := .venv-spark
ENGINE_PYTHON ?= $(firstword $(shell for name in python3.11 python3.10; do if $$name -c pass 2>/dev/null; then command -v $$name; fi; done))
export SFUMATO_DATA ?= $(if $(wildcard ../shared/data),$(abspath ../shared/data))
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup engine demo check test test-pages test-spark slow mutants bench docs notebooks wheel clean

setup: $(VENV)/ready

# What a user has: the package alone.
$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfumato needs Python 3.11 or newer")'
	PYTHON=$(PYTHON) .ci/environment $(VENV) --editable .
	@touch $@

# What a developer has.
$(VENV)/ready: $(VENV)/installed
	PYTHON=$(PYTHON) .ci/environment $(VENV) --editable '.[dev]'
	$(BIN)/sfumato doctor --warm --quiet
	@touch $@

# The engine for secure computation needs an older Python and numpy, so it has an environment of its own.
engine: $(if $(ENGINE_PYTHON),$(ENGINE)/ready)
	@$(if $(ENGINE_PYTHON),true,echo "no Python 3.10 or 3.11 was found: tests of secure computation are skipped; set ENGINE_PYTHON to one to run them")

$(ENGINE)/ready:
	$(ENGINE_PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 12) and "the engine needs Python 3.10 or 3.11: set ENGINE_PYTHON to one")'
	PYTHON=$(ENGINE_PYTHON) .ci/environment $(ENGINE) 'spu==0.9.5' 'numpy<2'
	@touch $@

demo: $(VENV)/installed
	$(BIN)/sfumato demo -o demo --overwrite

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One thread a process: tests run two at a time, and threads of linear algebra would only wait for each other.
test slow: export OPENBLAS_NUM_THREADS := 1
test slow: export OMP_NUM_THREADS := 1
test slow: export MKL_NUM_THREADS := 1

# Kernels whose sources changed are compiled before, once: every process of a run would compile them for itself. Two processes
# share the rooms of the tests, about half of the work each, so that each loads its own and no third one has to follow them.
HALF := tests/assess tests/cli tests/survey tests/fuzz tests/stream tests/tables tests/tuning
TESTS := $(BIN)/pytest -q -m 'not slow and not pages' --durations=10

test: check engine
	$(BIN)/python -m tests.warm
	@log=$$(mktemp); $(TESTS) $(HALF) > $$log 2>&1 & \
	$(TESTS) $(HALF:%=--ignore=%); rest=$$?; \
	wait $$!; half=$$?; cat $$log; rm $$log; exit $$((rest | half))

# Pages in a real browser, where there is one.
test-pages: setup
	$(BIN)/pytest -q -m 'pages and not slow'

# A cluster of real processes. Spark wants an older pandas, so it has an environment of its own; without Java it says so.
test-spark: export OPENBLAS_NUM_THREADS := 1
test-spark: $(if $(shell command -v java),$(SPARK)/ready)
	@$(if $(shell command -v java),$(SPARK)/bin/python -m pytest -q tests/spark --durations=5,echo "no Java was found: tests of Spark are skipped")

$(SPARK)/ready: pyproject.toml
	PYTHON=$(PYTHON) .ci/environment $(SPARK) --editable '.[spark]' pytest hypothesis
	@touch $@

# Long statistical runs, and every test again with all that it tries: twenty times the examples, drawn at random.
slow: setup engine
	$(BIN)/python -m tests.warm
	$(BIN)/pytest -q -n 2 --dist loadfile --hypothesis-profile=random --durations=10

bench: setup
	$(BIN)/pytest benchmarks/speed -q --import-mode=importlib -o python_files='bench_*.py' -o python_functions='bench_*' --benchmark-sort=name
	$(BIN)/python benchmarks/speed/grouping.py $(BENCH)
	$(BIN)/python benchmarks/papers/ay05.py

# Changes one thing at a time in the rooms that must not err, and lists what no test notices. MUTANTS names a part of them,
# as in make mutants MUTANTS='sfumato.certificate*'. The tool needs an older pytest, so it has an environment of its own.
mutants: $(MUTATION)/ready
	$(MUTATION)/bin/mutmut run --max-children 2 $(MUTANTS)
	$(MUTATION)/bin/mutmut results

$(MUTATION)/ready: pyproject.toml
	PYTHON=$(PYTHON) .ci/environment $(MUTATION) --editable '.[dev]' 'mutmut==3.8.0' 'pytest<9'
	@touch $@

docs: setup
	$(BIN)/mkdocs build --quiet --strict --site-dir site
	@echo "open site/index.html; to search, $(BIN)/python -m http.server --bind 127.0.0.1 --directory site 8080"

# Notebooks, run in a kernel from top to bottom; Jupyter has an environment of its own.
notebooks: $(NOTEBOOKS)/ready
	rm -rf site-notebooks && mkdir site-notebooks
	set -e; for name in examples/notebooks/*.py; do \
	  $(NOTEBOOKS)/bin/jupytext --quiet --to ipynb --output site-notebooks/$$(basename $$name .py).ipynb $$name; done
	cd site-notebooks && XDG_CONFIG_HOME=$(abspath site-notebooks)/.config PATH=$(abspath $(NOTEBOOKS))/bin:$$PATH jupyter nbconvert --log-level WARN --to html --execute *.ipynb
	@echo "open site-notebooks/*.html"

$(NOTEBOOKS)/ready: pyproject.toml
	PYTHON=$(PYTHON) .ci/environment $(NOTEBOOKS) --editable . jupytext nbconvert ipykernel
	@touch $@

# The wheel as others get it: built from a clean tree, installed into an empty environment far from this folder, and used:
# the demo, a reviewer's check, and the README's example.
wheel: $(VENV)/installed
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	set -e; empty=$$(mktemp -d); trap 'rm -rf "$$empty"' EXIT; cp README.md .ci/readme.py "$$empty"; \
	$(PYTHON) -m venv "$$empty/venv"; \
	"$$empty/venv/bin/python" -m pip install --quiet --disable-pip-version-check dist/*.whl; \
	cd "$$empty"; unset PYTHONPATH; export XDG_CONFIG_HOME="$$empty/config"; \
	venv/bin/sfumato demo -o demo; venv/bin/sfumato verify demo; \
	venv/bin/python readme.py README.md

clean:
	rm -rf $(VENV) $(ENGINE) $(MUTATION) $(NOTEBOOKS) mutants demo dist site site-notebooks .mypy_cache .ruff_cache .benchmarks .hypothesis
