# Everything starts here: `make reports` and `make test` work on a fresh clone and set up what they need.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := -m pip --disable-pip-version-check
EXTRAS := .[dev,reports,notebook]
# Held back for the first releases of Python 3.11 (Debian 12 has 3.11.2): soupsieve 3 and later need 3.11.5.
HOLD := 'soupsieve<3'
NOTEBOOKS = $(wildcard notebooks/*.ipynb)

.PHONY: help setup reports calibrate matrix test gate check bench notebooks lab format constraints clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with the pinned packages of constraints.txt (done once, by all that need it)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v[:2] <= (3, 14) else \
	  f"simkit needs Python 3.11 to 3.14 and {sys.executable} is {v[0]}.{v[1]}: try make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv .venv || { \
	  echo "$(PYTHON) -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "setting up .venv with $$($(BIN)/python -V); a minute or two with an empty package cache" >&2
	@$(BIN)/python $(PIP) install -qq --constraint constraints.txt --editable '$(EXTRAS)'
	@touch $@

reports: $(READY) ## Run every experiment and write reports/
	$(BIN)/simkit run --all
	$(BIN)/simkit report

calibrate: $(READY) ## Put the stated error rates to the test, and rewrite their pages (15 minutes)
	$(BIN)/simkit run calibration power field_tests
	$(BIN)/simkit report

matrix: $(READY) ## Find which test sees which fault, and rewrite that page (5 minutes)
	$(BIN)/simkit run detection
	$(BIN)/simkit report

test: $(READY) ## Run the tests: on all cores, then those that measure time, alone (some: make test ARGS="-k name")
ifdef ARGS
	$(BIN)/pytest $(ARGS)
else
	$(BIN)/pytest --numprocesses logical --maxprocesses 8 --dist worksteal -m "not timing"
	$(BIN)/pytest -m timing
endif

gate: $(READY) ## Judge the built-in samplers; fails if one is not lossless or the evidence is too thin
	$(BIN)/simkit gate

check: $(READY) ## Lint, format, types and the one-way imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(READY) ## Measure the speed of sampling as ratios inside one run
	$(BIN)/simkit bench

notebooks: $(READY) ## Execute the notebooks and leave the files as they are
	out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; \
	$(BIN)/jupyter nbconvert --to notebook --execute --output-dir "$$out" $(NOTEBOOKS)

lab: $(READY) ## Open the notebooks in Jupyter
	$(BIN)/jupyter lab notebooks

format: $(READY) ## Let ruff repair what it can
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

constraints: ## Write constraints.txt anew with the newest versions that fit
	work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	$(PYTHON) -m venv "$$work/venv"; \
	"$$work/venv/bin/python" $(PIP) install -qq '$(EXTRAS)' $(HOLD); \
	{ sed '/^[^#]/,$$d' constraints.txt; "$$work/venv/bin/python" $(PIP) freeze --exclude simkit-speculative; } >"$$work/new"; \
	cp "$$work/new" constraints.txt

clean: ## Remove .venv, caches and unfinished results; keeps reports/
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache .simkit build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.partial' -type f -delete
