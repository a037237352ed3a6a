# Everything runs inside .venv, which is made from requirements.lock (pinned, with hashes).

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The first interpreter that is new enough and can make a virtual environment; `PYTHON=` overrides.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in $(CANDIDATES); do \
	if "$$name" -c '$(USABLE)' >/dev/null 2>&1; then command -v "$$name"; break; fi; done)

PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq

.DEFAULT_GOAL := help
.PHONY: help demo test test-long fuzz lint bench docs lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: $(READY) ## the tour: what Corollary does, in a few minutes
	@$(BIN)/python -m corollary.cli.demo

test: lint ## lint, then run the fast tests
	$(BIN)/pytest -n 2 --dist loadgroup -m "not long"

test-long: $(READY) ## run the long tests: replays, random ontologies, faults, hostile inputs
	$(BIN)/pytest -n 2 --dist loadgroup -m long

fuzz: $(READY) ## search for failures at random: make fuzz SECONDS=600 [SEED=1] [LANES="streams faults"]
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(LANES)

lint: $(READY) ## formatting, style, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(READY) ## run the benchmarks
	$(BIN)/python -m benchmarks

docs: $(READY) ## build the documentation as a site in build/site
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "See build/site/index.html"

lock: ## pin the newest versions that pyproject.toml allows into requirements.lock
	$(call require_python)
	"$(PYTHON)" -m venv --clear build/lock
	build/lock/bin/python -m pip install -qq --disable-pip-version-check uv
	build/lock/bin/uv pip compile pyproject.toml --all-extras --upgrade --quiet \
		--universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
		--no-header --no-emit-index-url --no-emit-find-links --output-file requirements.lock

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) build dist .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf artifacts derby.log metastore_db spark-warehouse
	find . -name .git -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml
	$(call require_python)
	@echo "Installing into $(VENV) (a few minutes the first time)"
	@"$(PYTHON)" -m venv --clear $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

define require_python
	@"$(PYTHON)" -c '$(USABLE)' >/dev/null 2>&1 || { \
		echo "Python 3.11 or newer, with venv, is needed; tried: $(or $(PYTHON),$(CANDIDATES))." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
endef
