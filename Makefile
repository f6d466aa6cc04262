# Shortcuts for daily work.  Nothing needs make: bin/test runs the same checks.

python := .venv/bin/python

.PHONY: all test test-fast lint format types oracle-long setup

all: test lint types

setup:
	@sh bin/setup dev

test: setup
	$(python) -m pytest -n auto --dist loadgroup --no-loadscope-reorder

test-fast: setup
	$(python) -m pytest -n auto --dist loadgroup --no-loadscope-reorder -m "not slow and not spark"

lint: setup
	$(python) -m ruff format --check .
	$(python) -m ruff check .

format: setup
	$(python) -m ruff format .
	$(python) -m ruff check --fix .

types: setup
	$(python) -m mypy

# The oracle comparisons with many more examples: minutes to hours.
oracle-long: setup
	MATCHWOOD_PROFILE=long $(python) -m pytest tests/oracle
