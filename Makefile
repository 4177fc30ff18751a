# Two commands are enough on a fresh clone: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?=
VENV := .venv
LOWEST := .venv-lowest
BENCH ?= throughput
# The workers that Spark starts must run the same Python, and Spark the Java that the set-up found.
RUN = PYSPARK_PYTHON="$(CURDIR)/$(1)/bin/python" JAVA_HOME="$$(cat $(1)/java-home)" PATH="$(CURDIR)/$(1)/bin:$$PATH"
# Two processes with a Spark each; the tests of a file, which share what is dear to set up, stay together.
PYTEST = python -m pytest -n 2 --dist loadfile

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help .venv $(LOWEST) demo test lint test-lowest test-slow test-browser bench page format clean

help: ## show this list
	@awk -F ':.*## ' '/^[.a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.venv: $(VENV)/ready ## set up: the virtual environment, the pinned packages, Java

$(VENV)/ready: requirements.txt pyproject.toml tools/venv.sh tools/java.sh tools/packages.sh
	@PYTHON="$(PYTHON)" tools/venv.sh $(VENV) requirements.txt

$(LOWEST): $(LOWEST)/ready

$(LOWEST)/ready: requirements-lowest.txt pyproject.toml tools/venv.sh tools/java.sh tools/packages.sh
	@PYTHON="$(PYTHON)" tools/venv.sh $(LOWEST) requirements-lowest.txt lowest

demo: .venv ## a quarter of the state moves in every way while a stream runs, then Spark's own rescale; about three minutes, makes report.html
	@$(call RUN,$(VENV)) sterna demo $(ARGS)

lint: .venv ## ruff and mypy
	@$(call RUN,$(VENV)) ruff check .
	@$(call RUN,$(VENV)) ruff format --check .
	@$(call RUN,$(VENV)) mypy

test: lint ## lint, types, and the tests that take no longer than minutes
	@$(call RUN,$(VENV)) $(PYTEST) $(ARGS)

test-lowest: $(LOWEST) ## the tests on the lowest versions that Sterna supports
	@$(call RUN,$(LOWEST)) $(PYTEST) $(ARGS)

test-slow: .venv ## the slow tests: crashes at random, soak
	@$(call RUN,$(VENV)) python -m pytest -m slow $(ARGS)

test-browser: .venv ## the tests of pages in a real browser; installs Chromium where that is possible
	@browser="$$(tools/browser.sh)" && $(call RUN,$(VENV)) STERNA_BROWSER="$$browser" python -m pytest -m browser $(ARGS)

bench: .venv ## a benchmark: BENCH=throughput|state|bins|migrate|peers, ARGS="--quick --json"
	@$(call RUN,$(VENV)) sterna bench $(BENCH) $(ARGS)

page: .venv ## docs/evaluation.md and its pictures, from the figures in docs/figures
	@$(call RUN,$(VENV)) sterna bench page $(ARGS)

format: .venv ## let ruff format the code
	@$(call RUN,$(VENV)) ruff check --fix-only .
	@$(call RUN,$(VENV)) ruff format .

clean: ## remove the environments and everything that tools left behind
	rm -rf $(VENV) $(LOWEST) build dist spark-warehouse metastore_db derby.log artifacts
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
