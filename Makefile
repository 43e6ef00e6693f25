# Each target sets up what it needs; only Python 3.10+ must be there. `make PYTHON=python3.12 …` chooses one.
PYTHON ?= python3
BIN := .venv/bin
CONFIG ?= $(firstword $(wildcard monitoring.yaml) demo/monitoring.yaml)

.PHONY: setup demo test dev lint docs lock clean

setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo 'Python 3.10 or newer is needed; choose one with: make PYTHON=python3.12 ...'; exit 1; }
	$(PYTHON) -m venv .venv
	@echo 'installing the locked dependencies (about 2 minutes, once)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m monitoring_platform.warehouse.session 2>/dev/null | tail -n 1
	@touch $@

demo: setup
	$(BIN)/monitoring-platform demo

test: setup
	$(BIN)/python -m pytest

dev: setup
	@test -f $(CONFIG) || $(BIN)/monitoring-platform demo
	$(BIN)/monitoring-platform dev --config $(CONFIG)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup
	$(BIN)/python -m monitoring_platform.marts.reference > docs/tables.md
	$(BIN)/python -m monitoring_platform.marts.lineage
	$(BIN)/python -m monitoring_platform.queries > docs/queries.md

# Writes the lock anew (needs uv); no address of a package index gets into it.
lock:
	uv pip compile pyproject.toml --group dev --all-extras --universal --python-version 3.10 --generate-hashes \
		--no-emit-index-url --no-header --output-file requirements.lock

clean:
	rm -rf .venv demo warehouse warehouse.dagster
