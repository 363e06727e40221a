# `make demo` and `make test` need nothing but Python ≥ 3.11: they make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that share the tests: one more than two cores, since much of what is tested waits.
WORKERS ?= 3
SOURCES := src tests benchmarks examples typing_tests
# A process that a test starts reads what was compiled before it, whatever is set for others.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check-code fast-tests test-slow check bench docs clean

demo: $(VENV)/.base
	$(BIN)/witan demo

# The code is checked while the tests run; what the checks find is shown at once, in one piece.
test: $(VENV)/.test
	@$(MAKE) --no-print-directory -j2 check-code fast-tests

check-code: $(VENV)/.test
	@{ $(BIN)/ruff format --check $(SOURCES) && $(BIN)/ruff check $(SOURCES) && \
	$(BIN)/mypy && $(BIN)/lint-imports; } >$(VENV)/checks.txt 2>&1; \
	status=$$?; echo; cat $(VENV)/checks.txt; exit $$status

fast-tests: $(VENV)/.test
	@$(BIN)/python -m pytest -m "not slow" -n $(WORKERS)

# Two at a time, since they bring many processes of their own; what measures seconds has the machine
# to itself. Then every property once more, on fifteen times as many drawn examples.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m "slow and not alone" -n 2
	$(BIN)/python -m pytest -m alone
	$(BIN)/python -m pytest -m "hypothesis and not slow" -n $(WORKERS) --hypothesis-profile=deep

bench: $(VENV)/.test
	$(BIN)/python benchmarks/million.py
	$(BIN)/python benchmarks/one_profile.py
	$(BIN)/python benchmarks/one_session.py
	$(BIN)/python benchmarks/ratings.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/council.py
	$(BIN)/python benchmarks/one_call.py
	$(BIN)/python benchmarks/history_writes.py
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/history_reads.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/probabilities.py
	$(BIN)/python benchmarks/tally.py
	$(BIN)/python benchmarks/batch.py
	$(BIN)/python benchmarks/lake.py
	$(BIN)/python benchmarks/serve.py

check: test

docs: $(VENV)/.docs
	$(BIN)/zensical build --strict

clean:
	rm -rf $(VENV) site dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.base: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group test --group check
	touch $@

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --group docs
	touch $@
