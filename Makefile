# Everything runs in a virtual environment of its own, .venv; nothing needs root.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# One process more than cores, at most 4: some tests wait for a browser or another process.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -gt 3 ] && echo 4 || echo $$((n + 1)))

# A worker that crashes ends the run: with --dist loadfile its replacement may wait for ever.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadfile --max-worker-restart=0

.PHONY: setup demo quick test test-all campaign check docs site release try-release minimum paper clean

setup: $(READY)  ## create .venv and install everything

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "sparcets needs Python 3.10 or newer; set PYTHON=/path/to/python3.10+"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: $(READY)  ## explain a few trials of simulated ball catching, end to end
	$(BIN)/sparcets demo --out demo

quick: $(READY)  ## what to run before every commit: lint, and the tests of core, data, motion and show; a minute on two cores
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(PYTEST) -q -m "not long" tests/core tests/data tests/motion tests/show tests/test_architecture.py tests/test_imports.py tests/test_security.py

test: $(READY)  ## run the tests, but for those that take longest
	$(PYTEST) -m "not long"

test-all: $(READY)  ## run all tests
	$(PYTEST)

campaign: $(READY)  ## run the whole campaigns of random trials; half an hour on two cores
	$(BIN)/python -m tests.campaigns

check: $(READY)  ## format, lint and types, as CI does
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(READY)  ## write the generated pages and pictures
	$(BIN)/python docs/generate.py

site: .venv/.docs  ## build the documentation as a site, into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html; with search: python3 -m http.server -d site"

release: .venv/.release  ## build the wheel and the source archive into dist/, and check both
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*

try-release: release  ## install the wheel into an empty environment, and run the README's example there
	$(BIN)/python scripts/try_release.py

minimum:  ## run the tests with the lowest versions that pyproject.toml allows
	$(PYTHON) scripts/test_versions.py minimum

.venv/.%: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

paper: $(READY)  ## the paper's tables and figures at a small scale; a quarter of an hour on two cores
	$(BIN)/sparcets reproduce all --scale small --out reproduction

clean:  ## remove what the other targets made
	rm -rf .venv demo reproduction site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
