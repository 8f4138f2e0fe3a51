# Each target makes .venv and installs what it needs into it; a second call finds it there.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# The python of test-gpu. A machine whose own python has torch and the other wheels: make test-gpu GPU_PYTHON=python3
GPU_PYTHON ?= $(BIN)/python

# Threads that have nothing to do sleep. By default they spin, and on busy cores training then takes many times as long.
export OMP_WAIT_POLICY := passive

.PHONY: demo test test-pairs test-teeth test-storm test-evidence test-gpu examples evidence bench report lint clean

# A project from the default answers, generated and trained.
demo: $(INSTALLED)
	$(BIN)/copier copy --defaults --overwrite --quiet --vcs-ref HEAD "$(CURDIR)" demo
	cd demo && ../$(BIN)/python sample_data.py
	cd demo && ../$(BIN)/python train.py --overwrite
	cd demo && ../$(BIN)/python evaluate.py --checkpoint runs/default/best.pt
	cd demo && ../$(BIN)/python plot.py runs/default
	@echo
	@echo "the project      demo/ (start with demo/README.md and demo/train.py)"
	@echo "the checkpoint   demo/runs/default/best.pt"
	@echo "its curves       demo/runs/default/curves.png"

test: $(INSTALLED) lint
	$(BIN)/pytest -n 2 --dist loadgroup

# Every pair of choices, in projects that train: under an hour. What has passed is skipped until it changes; all anew after
# `rm -r .pairs`. ONLY=017 runs one project, and prints all that it said.
test-pairs: $(INSTALLED)
	$(BIN)/pytest tests/test_pairs.py --pairs 1/1 $(if $(ONLY),-k $(ONLY)-,-n 2 --dist worksteal)

# Every fault in every form of project: under an hour. Writes README's table anew. ONLY="shuffle and off" tries one fault.
test-teeth: $(INSTALLED)
	$(BIN)/pytest tests/test_teeth.py --teeth 1/1 -n 2 --dist loadgroup $(if $(ONLY),-k "$(ONLY)",--teeth-table README.md)

# Kills runs of nine projects 25 times each, at any moment: some ten minutes.
test-storm: $(INSTALLED)
	$(BIN)/pytest tests/test_storm.py --storm 25 -n 2 --dist worksteal

# Makes the runs of docs/what-breaks.md again, and compares.
test-evidence: $(INSTALLED)
	$(BIN)/pytest tests/test_evidence.py --evidence 1/1

test-gpu: $(if $(filter $(BIN)/%,$(GPU_PYTHON)),$(INSTALLED))
	$(GPU_PYTHON) -m pytest -m gpu tests/test_gpu.py

# Writes examples_generated/ and README's tables anew, after a change of the template.
examples: $(INSTALLED)
	$(BIN)/plainloop examples
	$(BIN)/plainloop choices --markdown README.md

# Writes docs/what-breaks.md, from runs that it makes: some ten minutes.
evidence: $(INSTALLED)
	PYTHONPATH=tests $(BIN)/python bench/evidence.py

bench: $(INSTALLED)
	$(BIN)/python bench/step.py

report: $(INSTALLED)
	$(BIN)/python bench/report.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf .venv demo .pytest_cache .ruff_cache

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,train]'
	touch $@
