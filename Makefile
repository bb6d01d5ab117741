# Everything runs in a virtual environment of its own, .venv; nothing needs root.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# One process more than cores, at most 4: some tests wait for a browser or another process.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -gt 3 ] && echo 4 || echo $$((n + 1)))

.PHONY: setup demo test campaign check docs paper clean

setup: $(READY)  ## create .venv and install everything

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "sparcets needs Python 3.10 or newer; set PYTHON=/path/to/python3.10+"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: $(READY)  ## explain a few trials of simulated ball catching, end to end
	$(BIN)/sparcets demo --out demo

test: $(READY)  ## run the tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadfile

campaign: $(READY)  ## run the whole campaigns of random trials; half an hour on two cores
	$(BIN)/python -m tests.campaigns

check: $(READY)  ## format, lint and types, as CI does
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(READY)  ## write the generated pages and pictures
	$(BIN)/python docs/generate.py

paper: $(READY)  ## the paper's tables and figures at a small scale; a quarter of an hour on two cores
	$(BIN)/sparcets reproduce all --scale small --out reproduction

clean:  ## remove what the other targets made
	rm -rf .venv demo reproduction .pytest_cache .mypy_cache .ruff_cache .hypothesis
