# Every target works on a fresh machine with Python >= 3.11 and make.
PYTHON ?= python3
BIN = .venv/bin
STAMP = .venv/.installed

.PHONY: env demo test bench check soak clean
env: $(STAMP)

$(STAMP): pyproject.toml constraints.txt nodeps.txt
	@echo "setting up .venv (a few minutes the first time) …"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "setuptools>=77" wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[test]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r nodeps.txt
	@touch $(STAMP)

demo: env
	$(BIN)/python -m whytrust.demo report.html

test: env
	$(BIN)/python -m pytest

bench: env
	$(BIN)/python -m benchmarks

check: env
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

soak: env
	SOAK=1 $(BIN)/python -m pytest -q tests/domains tests/pictures tests/measures tests/report tests/test_designs.py \
		tests/test_engine.py tests/test_engines.py tests/test_fuzz.py tests/test_packs.py tests/test_stats.py \
		tests/test_store.py tests/backends/test_torch_fast.py
	SOAK=1 $(BIN)/python -m pytest -q -n 0 -s tests/test_faults.py tests/test_damage.py tests/garbage tests/studies/test_blocks_alone.py

clean:
	rm -rf .venv build dist report.html
