# Each target sets up what it needs: a virtual environment in .venv, with dependencies at pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo test lint format bench paper clean

help:
	@echo "make demo    install the base and run the main job on a real problem"
	@echo "make test    install what the tests need and run them all, in about six minutes on two cores"
	@echo "make lint    ruff, mypy --strict and the layers"
	@echo "make bench   measure speed, faults and which mutants the tests catch; takes hours"
	@echo "make paper   the paper's experiments, 1,000 repetitions, into build/paper"
	@echo "make format  let ruff lay out the code"

# Debian has venv in a separate package: root installs it here, others get a hint.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "thresher needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq python3-venv; \
	  else echo "python3 -m venv does not work here; try: sudo apt-get install python3-venv"; exit 1; fi; \
	  $(PYTHON) -m venv $(VENV); }

# A stamp file means: installed as pyproject.toml and constraints.txt say.
$(VENV)/base: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing thresher and its base dependencies into $(VENV) …"
	@$(BIN)/python -m pip --disable-pip-version-check show thresher 2>/dev/null | awk '/^Name:/ { there = 1 } /^Editable/ { there = 0 } \
	  END { if (there) print "the thresher in $(VENV) is replaced by an editable install of this folder" }'
	@$(PIP) --editable .
	@touch $@

$(VENV)/dev: $(VENV)/base
	@echo "installing what tests and checks need …"
	@$(PIP) --editable '.[dev,lab,web,dask,ray,inspect]'
	@touch $@

# The page is tested in a real browser, failing disks with strace, and poolers with PgBouncer. Root installs them here; for others, those tests
# are skipped and say why.
$(VENV)/browser: $(VENV)/dev
	@for program in chromium strace pgbouncer; do PATH="$$PATH:/usr/sbin" command -v $$program >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq $$program >/dev/null; } || \
	  echo "$$program is not installed: some tests will be skipped; try: sudo apt-get install $$program"; done
	@touch $@

demo: $(VENV)/base
	@$(BIN)/thresher demo

# Tests marked `alone` measure time or kill the workers of a cluster: nothing else may run beside them. Both runs must pass.
# With bytecode on disk, whatever the environment says, the many programs that tests start do so in two thirds of the time.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/browser
	@$(PYTEST) --quiet --numprocesses 3 --dist loadgroup --no-loadscope-reorder -m "not alone"; crowd=$$?; \
	  echo "the tests that run alone:"; \
	  $(PYTEST) --quiet -m alone tests/log tests/run tests/web && exit $$crowd

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) --quiet tests/test_layers.py tests/test_private_names.py

format: $(VENV)/dev
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .

bench: $(VENV)/dev
	$(BIN)/python -m bench

paper: $(VENV)/dev
	$(BIN)/python -m paper all --out build/paper --repetitions 1000
	$(BIN)/python -m bench.kano build/paper

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
