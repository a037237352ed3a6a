# Everything runs inside .venv, created from requirements.lock (pinned, with hashes).

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Use the first interpreter that is new enough and has venv; override with `PYTHON=`.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in $(CANDIDATES); do \
	if "$$name" -c '$(USABLE)' >/dev/null 2>&1; then command -v "$$name"; break; fi; done)

PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-long test-versions \
	fuzz lint bench docs code-map dist lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: $(READY) ## run the tour, about a minute long; make demo SERVE=1 ends with the page
	@$(BIN)/python -m corollary.cli.demo $(if $(SERVE),--serve)

test: $(READY) ## lint and run the fast tests, side by side
	@$(MAKE) --no-print-directory -j 2 lint test-fast

test-fast: $(READY) ## run the fast tests alone
	$(BIN)/pytest -n 2 --dist loadgroup -m "not long"

test-long: $(READY) ## run the long tests: replays, faults, hostile inputs, more random cases
	$(BIN)/pytest -n 2 --dist loadgroup -m "long or scaled"

test-versions: ## run the fast tests on each of Python 3.11, 3.12 and 3.13 that is found
	@for version in 3.11 3.12 3.13; do \
		for python in "python$$version" "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
			if "$$python" -c '$(USABLE)' >/dev/null 2>&1; then break; fi; python=; \
		done; \
		if [ -z "$$python" ]; then echo "Python $$version is not here: skipped"; continue; fi; \
		echo "Python $$version: $$python"; \
		$(MAKE) --no-print-directory VENV="build/python$$version" PYTHON="$$python" test-fast || exit 1; \
	done

fuzz: $(READY) ## run randomized tests: make fuzz SECONDS=600 [SEED=1] [LANES="streams faults"]
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(LANES)

lint: $(READY) ## check formatting, style, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.check_commits

bench: $(READY) ## run the benchmarks
	$(BIN)/python -m benchmarks

docs: $(READY) ## build the documentation site in build/site
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "See build/site/index.html"

code-map: $(READY) ## generate docs/code-map.md from module docstrings
	$(BIN)/python -m tools.code_map

# The checks of a release: metadata, then both files, each installed into a fresh environment where
# the examples of the README are run.
dist: $(READY) ## build wheel and sdist, check them, install each and try it
	rm -rf dist build/twine build/fresh
	$(BIN)/python -m hatchling build
	"$(PYTHON)" -m venv build/twine
	build/twine/bin/python -m pip install -qq --disable-pip-version-check twine
	build/twine/bin/twine check --strict dist/*
	@for file in dist/*.whl dist/*.tar.gz; do \
		echo "Installing $$file into a fresh environment"; \
		"$(PYTHON)" -m venv --clear build/fresh && \
		build/fresh/bin/python -m pip install -qq --disable-pip-version-check "$$file" && \
		$(BIN)/python -m tools.try_dist build/fresh || exit 1; \
	done

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
	@echo "Compiling (skipped if it fails: loops are also compiled when they are needed)"
	@-$(BIN)/corollary warm
	@touch $@

define require_python
	@"$(PYTHON)" -c '$(USABLE)' >/dev/null 2>&1 || { \
		echo "Python 3.11 or newer with venv is required; tried: $(or $(PYTHON),$(CANDIDATES))." >&2; \
		echo "Install one, or set it: make PYTHON=/path/to/python" >&2; exit 1; }
endef
