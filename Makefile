# Commands for developers and first-time visitors. `make help` lists them.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.binloom-setup
PYTEST_ARGS ?=
# Tests of `make test`: `sample`, or `all` as `.ci/run` has it.
TESTS ?= sample
SELECTED_sample := -m "not long"
SELECTED_all :=
WORKERS ?= 2
IN_PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Turn off the telemetry of tools.
export DO_NOT_TRACK := 1
export DBT_SEND_ANONYMOUS_USAGE_STATS := false
export GX_ANALYTICS_ENABLED := False
# mkdocs-material prints that mkdocs has a successor.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo check test deep lint format generate guide man docs bench wheel lock clean examples

help:  ## what there is
	@sed -n 's/^\([a-z]*\):.*##  *\(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

setup: $(STAMP)  ## .venv/ from the lock, with binloom and dbt in it

$(STAMP): requirements.lock pyproject.toml .ci/setup
	@bash .ci/setup $(VENV)
	@touch $@

demo: setup  ## the whole way on a recorded shop, ends with a printed answer
	@$(BIN)/binloom demo

test: setup  ## a sample of all tests, ten minutes; those whose server is missing say so (TESTS=all: all tests)
	@$(BIN)/python -m pytest $(IN_PARALLEL) $(SELECTED_$(TESTS)) $(PYTEST_ARGS)

deep: lint  ## all SQL linted, all tests on all servers, with many more random rounds and kills; hours
	@BINLOOM_DEPTH=full BINLOOM_REQUIRE_SERVERS=1 $(BIN)/python -m pytest $(IN_PARALLEL) $(PYTEST_ARGS)

check: setup  ## what a change needs at least: types, linters, quick tests without Spark and servers; two to three minutes
	@bash .ci/lint $(BIN) changed
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not spark and not slow and not mysql and not mariadb and not mysql56 and not mariadb118" $(PYTEST_ARGS)

lint: setup  ## ruff, mypy, sqlfluff, yamllint (SQL=recent: only the SQL of the last twenty commits)
	@bash .ci/lint $(BIN) $(SQL)

format: setup  ## let ruff and sqlfluff rewrite what they can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/sqlfluff fix models macros tests/dbt

generate: setup  ## generated files: dbt's sources, raw columns, docs/reference.md, the picture of the README
	@$(BIN)/python -m tools.generate

guide: setup  ## the pages of docs/ as a site with search, in site/guide/
	@$(BIN)/mkdocs build --quiet --strict

docs: setup  ## the lineage site in site/, and the pages beside it in site/guide/
	@BINLOOM_LINEAGE_SITE=../index.html $(BIN)/mkdocs build --quiet --strict
	@$(BIN)/binloom docs

bench: setup  ## the benchmarks; figures belong in benchmarks/README.md
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

man: setup  ## the man page, where `man binloom` finds it if .venv/bin is in PATH
	@mkdir -p $(VENV)/share/man/man1
	@$(BIN)/python -m tools.man_page > $(VENV)/share/man/man1/binloom.1

wheel: setup  ## the wheel, with the compiled decoder, and the source distribution in dist/
	@$(BIN)/python -m tools.wheel

lock:  ## requirements.lock anew from pyproject.toml
	@test -x $(BIN)/python || $(MAKE) --no-print-directory setup
	@bash .ci/lock $(VENV)

examples:  ## .examples/ with the tools of docs/examples, so that their tests run
	@test -x .examples/bin/dagster || { python3 -m venv .examples && .examples/bin/pip install --quiet --disable-pip-version-check -r docs/examples/requirements.txt; }

clean:  ## everything that git ignores, except .servers/
	@rm -rf $(VENV) .examples .binloom build dist target logs site .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find . -name __pycache__ -not -path "./.servers/*" -prune -exec rm -rf {} +
