# `make` lists what there is. Everything runs in .venv, which `make setup` creates.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
JARS := .venv/.jars
FILES ?= $(wildcard tests/scenarios/*.jsonl tests/saved_cases/*.jsonl)

.DEFAULT_GOAL := help
.PHONY: help setup test test-fast test-more test-spark test-long test-long-duckdb test-long-spark versions random mutants size golden check format bench bench-large project queries constructs demo demo-learning replay clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-17s %s\n", $$1, $$2}'

setup: $(INSTALLED) $(JARS) ## virtual environment with everything for development, and Spark's Delta jars

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(JARS): $(INSTALLED)
	$(BIN)/fivm jars > $@

# Each process takes half of the tests on Spark, and then single ones without Java.
test: setup ## what must pass before a commit, from a clean clone
	$(BIN)/pytest tests python -m "not more and not long" -n 2 --dist loadgroup -q --durations=20

test-fast: $(INSTALLED) ## tests and doctests that need no Java
	$(BIN)/pytest tests python -m "not spark and not long and not more" -n 2 --dist worksteal -q

test-more: $(INSTALLED) ## more of the same without Java: other seeds, ways and scenarios, whole queries
	$(BIN)/pytest tests -m "more and not long" -n 2 --dist worksteal -q

# The tests of a file share tables, and a session takes what two cores do not need.
test-spark: setup ## tests on local Spark + Delta, in two sessions
	$(BIN)/pytest tests -m "spark and not long" -n 2 --dist loadfile -q --durations=10

# What ARGS choose may all be in one of the two: pytest says 5 where there is nothing to run.
test-long: test-long-duckdb test-long-spark ## everything else, three hours; ARGS='-k random_on_spark' for a part

test-long-duckdb: $(INSTALLED) ## of that what needs no Java, an hour and a half
	$(BIN)/pytest tests -m "(more or long) and not spark" -n 2 --dist worksteal -q $(ARGS) || test $$? -eq 5

test-long-spark: setup ## and the rest, on Spark
	$(BIN)/pytest tests -m "long and spark" -n 2 --dist worksteal -q $(ARGS) || test $$? -eq 5

versions: $(INSTALLED) ## the quickstart and the tests on Spark with each set of versions; ARGS='-p 3.11'
	$(BIN)/nox --session versions $(ARGS)

random: $(INSTALLED) ## random queries of your choice over random changes; ARGS='--only "left join" --seeds 50'
	PYTHONPATH=tests $(BIN)/python -m generator $(ARGS)

mutants: setup ## break the product in one place after the other: tests have to notice; ARGS='NAME ...' for some
	PYTHONPATH=tests $(BIN)/python -m mutants $(ARGS)

size: $(INSTALLED) ## lines of the product at commits, by what they are; ARGS='v1 HEAD --without testing'
	$(BIN)/python tests/code_size.py $(ARGS)

golden: $(INSTALLED) ## write the golden plans anew; review the diff
	FIVM_UPDATE=1 $(BIN)/pytest -q tests/test_golden.py tests/test_fixtures.py tests/test_docs.py tests/test_cost_table.py tests/test_part_cost_table.py

check: $(INSTALLED) ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## refreshes beside recomputes, dbt's incremental models and jobs by hand; ARGS='--quick --page bench'
	$(BIN)/python -m benchmarks.compare $(ARGS)

# Says at once where there is too little free disk.
bench-large: setup ## four queries and two changes at scale factor 10, three rounds: 35 GB of disk, 16 GB of memory
	$(BIN)/python -m benchmarks.compare --large $(ARGS)

project: setup ## a dbt project of some fifty chained models through batches, as fivm and as tables; ARGS='--scale 0.1'
	$(BIN)/python -m benchmarks.project $(ARGS)

queries: $(INSTALLED) ## TPC-H and the papers' queries through changes; ARGS='--engine spark --batches 3'
	$(BIN)/python -m benchmarks.tpch $(ARGS)
	$(BIN)/python -m benchmarks.papers $(ARGS)

constructs: setup ## what a refresh reads of a million rows, construct by construct; ARGS='--only window'
	$(BIN)/python -m benchmarks.constructs $(ARGS)

demo: ## real flights, real changes, dbt run after each: recompute against refresh; ARGS='--readme README.md'
	$(PYTHON) -m demo.environment
	.demo/venv/bin/python -m demo --report .demo/report.json $(ARGS)

demo-learning: ## a regression over a five-way join of real flights follows their changes; ARGS='--years 1'
	$(PYTHON) -m demo.environment
	.demo/venv/bin/python -m demo.learning $(ARGS)

replay: $(INSTALLED) ## replay scenarios; FILES=... for your own, ARGS='--engine spark'
	$(BIN)/fivm replay $(FILES) $(ARGS)

clean: ## remove what the targets above have made
	rm -rf .venv .nox .demo .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find python -name '*.egg-info' -prune -exec rm -rf {} +
