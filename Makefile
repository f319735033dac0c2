# `make help` lists what can be made. PYTHON, VENV and TORCH may be set: `make install PYTHON=python3.12`.
PYTHON ?= $(firstword $(shell command -v python3.11) $(shell command -v python3))
VENV ?= .venv
# Installed if the environment has no torch yet.
TORCH ?= torch==2.13.0

BIN := $(VENV)/bin
# Python compiles the modules that it imports, once: otherwise every process of the tests compiles them again. Compiling
# all others too would take a third of the time.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --no-warn-conflicts --no-compile
INSTALLED := $(VENV)/.installed

# On the small data that ships, whatever is set in the environment.
DEMO := env -u ELMO_TASKS_DATA -u ELMO_TASKS_GLOVE -u ELMO_TASKS_BILM -u ELMO_TASKS_CACHE ALLENNLP_LOG_LEVEL=WARNING $(BIN)/allennlp
# Small batches and few epochs, for the small data.
DEMO_RUN := {"evaluate_on_test": true, "data_loader.batch_sampler.batch_size": 8, "trainer.num_epochs": 12}

.DEFAULT_GOAL := help
.PHONY: help install demo test fuzz check format docs wheel bench results clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## make a virtual environment with everything in it

$(INSTALLED): setup.cfg setup.py pyproject.toml allennlp.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "elmo_tasks needs Python 3.11 or later, but '$(PYTHON)' is older: run make PYTHON=python3.12, for example"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' \
	  || $(PIP) $(TORCH)
	$(PIP) --editable '.[allennlp,demo,dev,docs]'
	$(PIP) --no-deps -r allennlp.txt
	@touch $@

demo: install  ## train NER without and with ELMo on the data that ships, predict, and show the scores
	@echo "== NER without ELMo: training_configs/ner.jsonnet"
	@$(DEMO) train training_configs/ner.jsonnet -s demo/ner --force -o '$(DEMO_RUN)'
	@echo "== NER with ELMo: training_configs/ner_elmo.jsonnet"
	@$(DEMO) train training_configs/ner_elmo.jsonnet -s demo/ner_elmo --force -o '$(DEMO_RUN)'
	@echo "== Predictions of the model with ELMo for fixtures/ner/test.txt: demo/predictions.jsonl"
	@$(DEMO) predict demo/ner_elmo/model.tar.gz fixtures/ner/test.txt --use-dataset-reader --batch-size 32 \
	  --output-file demo/predictions.jsonl --silent
	@echo "== Scores"
	@$(BIN)/python -c 'import json; [print(f"{name:8}", "test F1 %.2f" % (100 * json.load(open(f"demo/{name}/metrics.json"))["test_f1-measure-overall"])) \
	  for name in ("ner", "ner_elmo")]'

test: install  ## run all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto

fuzz: install  ## every reader against more damaged files than `make test` draws
	ELMO_TASKS_FUZZ=2000 $(BIN)/python -m pytest tests/fuzz_test.py

check: install docs  ## formatter, linter, contracts of imports, type checker, documentation, and whether results are shown as they are
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy elmo_tasks
	$(BIN)/python -m elmo_tasks.replication.pages --check

format: install  ## format the code, and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: install  ## build the documentation into site/; a broken link is an error
	$(BIN)/mkdocs build --strict --quiet

wheel: install  ## build the wheel into dist/
	rm -rf build
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

bench: install  ## speed on the CPU: the biLM against AllenNLP's, the layer cache, an epoch with ELMo, the loader, a start
	$(BIN)/python benchmarks/bilm.py --repeats 2 --batch-sizes 1 64
	$(BIN)/python benchmarks/layer_cache.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/encoders.py
	$(BIN)/python benchmarks/loader.py
	$(BIN)/python benchmarks/startup.py

results: install  ## write README.md's table and docs/replication/results.md from the files in results/
	$(BIN)/python -m elmo_tasks.replication.pages

clean:  ## remove everything that was made, including the virtual environment
	rm -rf $(VENV) demo site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
