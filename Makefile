# `make help` lists the targets. PYTHON, VENV and TORCH may be set: `make install PYTHON=python3.12`.
PYTHON ?= $(firstword $(shell command -v python3.11) $(shell command -v python3))
VENV ?= .venv
# Installed if the environment has no torch yet.
TORCH ?= torch==2.13.0

BIN := $(VENV)/bin
# pip compiles nothing (`--no-compile`), so Python must be allowed to cache compiled modules.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --no-warn-conflicts --no-compile
# `allennlp` on the included sample data, whatever the environment says.
DEMO := env -u ELMO_TASKS_DATA -u ELMO_TASKS_GLOVE -u ELMO_TASKS_BILM -u ELMO_TASKS_CACHE ALLENNLP_LOG_LEVEL=WARNING $(BIN)/allennlp
# Small batches and few epochs.
DEMO_OVERRIDES := {"evaluate_on_test": true, "data_loader.batch_sampler.batch_size": 8, "trainer.num_epochs": 12}

.DEFAULT_GOAL := help
# For `make replicate`: tasks of Table 1, and the number of seeds.
TASKS ?= ner
SEEDS ?= 1
# The tests that compute, for `make test-rounding`.
ROUNDED := $(addprefix tests/, bilm commands corpora data metrics models modules paper predictors spacy trainer vectors)

.PHONY: help install demo replicate models test test-rounding test-all check format docs results configs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/.dev  ## make a virtual environment for the tests and checks

# An egg-info of an earlier `pip install .` in the checkout would hide the installed entry points.
$(VENV)/.demo: setup.cfg setup.py pyproject.toml allennlp.txt allennlp_today/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "elmo_tasks needs Python 3.11 or later: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import torch' 2> /dev/null || $(PIP) $(TORCH)
	@rm -rf elmo_tasks.egg-info
	$(PIP) --editable '.[allennlp]'
	$(PIP) --no-deps -r allennlp.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.demo  ## train NER without and with ELMo on the sample data, predict, and show the scores
	@$(DEMO) train training_configs/ner.jsonnet -s demo/ner --force -o '$(DEMO_OVERRIDES)'
	@$(DEMO) train training_configs/ner_elmo.jsonnet -s demo/ner_elmo --force -o '$(DEMO_OVERRIDES)'
	@$(DEMO) predict demo/ner_elmo/model.tar.gz fixtures/ner/test.txt --use-dataset-reader --batch-size 32 --output-file demo/predictions.jsonl --silent
	@$(BIN)/python -c 'import json; [print(f"{name:8} test F1 %.2f" % (100 * json.load(open(f"demo/{name}/metrics.json"))["test_f1-measure-overall"])) for name in ("ner", "ner_elmo")]'

# Without a network, all data except SST-5 is unpacked and can be trained on.
replicate: $(VENV)/.demo  ## retrain rows of Table 1 on the same data: make replicate TASKS="ner sst" SEEDS=2
	-$(BIN)/allennlp elmo-data open --to output/open
	ELMO_TASKS_CACHE=output/layer_cache $(BIN)/allennlp elmo-tables --plan open --table 1 --tasks $(TASKS) --seeds $(SEEDS) --jobs 2 --data output/open --results output/replication --against results/open

models: $(VENV)/.demo  ## train the models in models/ again, and write their cards (a day or more)
	-$(BIN)/allennlp elmo-data open --to output/open
	ELMO_TASKS_CACHE=output/layer_cache $(BIN)/python tools/train_models.py

test: install  ## run the tests
	$(BIN)/python -m pytest --numprocesses auto --durations 20

# Rounding differs between processors, batches and threads; tests marked slow start processes, which round as usual.
test-rounding: install  ## run the tests with the products of AVX2, rounded differently for each shape
	ELMO_TASKS_ROUNDING=1 ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 $(BIN)/python -m pytest --numprocesses auto -m "not slow and not weekly" $(ROUNDED)

test-all: install  ## run all tests, also most pages, examples and attacks, the wheel, and more random inputs
	ELMO_TASKS_FUZZ=2000 $(BIN)/python -m pytest --numprocesses auto -m "weekly or not weekly"

check: install docs  ## check format, lint, import contracts, types, documentation and shown results
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy elmo_tasks allennlp_today/allennlp_today
	$(BIN)/python tools/write_pages.py --check

format: install  ## format the code, and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: install  ## build the documentation into site/; a broken link is an error
	$(PIP) --quiet --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet

results: install  ## write README's table and docs/replication/results.md from the files in results/
	$(BIN)/python tools/write_pages.py

configs: install  ## write training_configs/expanded/, the configs as JSON
	$(BIN)/python tools/expand_configs.py

clean:  ## remove everything that was made, except output/
	rm -rf $(VENV) demo site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
