# Everything sets itself up: a virtual environment in .venv, and in it what the target needs, at pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo test again lint format bench paper clean

help:
	@echo "make demo    install the base and run the main job on a real problem"
	@echo "make test    install everything the tests need and run them all"
	@echo "make lint    ruff, mypy --strict and the layers"
	@echo "make bench   measure speed, as ratios in one run"
	@echo "make paper   the paper's experiments, 1,000 repetitions, into build/paper"
	@echo "make format  let ruff lay out the code"

# Debian keeps venv's pip in a package of its own; root may install it, others are told to.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "thresher needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq python3-venv; \
	  else echo "python3 -m venv does not work here; try: sudo apt-get install python3-venv"; exit 1; fi; \
	  $(PYTHON) -m venv $(VENV); }

# A stamp says that what it names is installed as pyproject.toml and constraints.txt want it.
$(VENV)/base: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing thresher and its base dependencies into $(VENV) …"
	@$(PIP) --editable .
	@touch $@

$(VENV)/dev: $(VENV)/base
	@echo "installing what tests and checks need …"
	@$(PIP) --editable '.[dev,lab,web,dask,ray]'
	@touch $@

# The page is tested in a real browser, and failing disks with strace; root may install them, for others those tests say
# why they are skipped.
$(VENV)/browser: $(VENV)/dev
	@for program in chromium strace; do command -v $$program >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq $$program >/dev/null; } || \
	  echo "there is no $$program here: some tests will be skipped; try: sudo apt-get install $$program"; done
	@touch $@

demo: $(VENV)/base
	@$(BIN)/thresher demo

test: $(VENV)/browser
	$(PYTEST) --numprocesses 2 --dist worksteal || $(MAKE) --no-print-directory again

# Tests kill real processes and wait for real clusters and browsers: what failed in the crowd must pass by itself.
again:
	@echo "once more, one at a time, what failed:"
	$(PYTEST) --last-failed --last-failed-no-failures none

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) --quiet tests/test_layers.py

format: $(VENV)/dev
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .

bench: $(VENV)/dev
	$(BIN)/python -m bench

paper: $(VENV)/dev
	$(BIN)/thresher paper all --out build/paper --repetitions 1000

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
