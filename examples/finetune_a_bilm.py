"""
How do I adapt a biLM to my own text?

A biLM is trained for one more epoch on the sentences of a task (section A.1 of the paper),
exported, and used. Here it is `small-open`, and the sentences come from the small NER data.
"""

import json
import logging
import tempfile
from pathlib import Path

from allennlp.commands.train import train_model_from_file

import elmo_tasks.plugin  # noqa: F401
from elmo_tasks import Elmo
from elmo_tasks.files.shipped import FIXTURES, PRETRAINED, TRAINING_CONFIGS

CONFIG = """
local bilm = import '{configs}/lib/bilm.libsonnet';
bilm(
  start={{ options: import '{bilm}/options.json', pretrained_file: '{bilm}/weights.hdf5' }},
  word_list='{bilm}/vocab.txt',
  text={{ train: '{text}/train.txt', dev: '{text}/dev.txt' }},
  tokens_per_batch=512,
  optimizer={{ type: 'adam', lr: 0.001 }},
)
"""


def main() -> None:
    """Fine-tunes, and prints the perplexity before and after."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "finetune.jsonnet"
        paths = {
            "configs": TRAINING_CONFIGS,
            "bilm": PRETRAINED / "small-open",
            "text": FIXTURES / "lm",
        }
        config.write_text(CONFIG.format(**paths), encoding="utf-8")
        model = train_model_from_file(config, folder / "run")

        metrics_before = json.loads((folder / "run" / "metrics_before.json").read_text("utf-8"))
        metrics_after = json.loads((folder / "run" / "metrics.json").read_text("utf-8"))
        before = metrics_before["perplexity"]
        after = metrics_after["best_validation_perplexity"]
        print(f"perplexity of the task's sentences: {before:.1f} before, {after:.1f} after")

        # What `allennlp elmo-export` does: the result is a biLM like any other.
        (folder / "mine").mkdir()
        model.bilm.save(folder / "mine" / "options.json", folder / "mine" / "weights.hdf5")
        elmo = Elmo.from_pretrained(folder / "mine")
        (vectors,) = elmo.embed([["Washington", "crossed", "the", "river", "."]])
        print(f"vectors of the new biLM: {vectors.shape[0]} words, {vectors.shape[1]} numbers each")


if __name__ == "__main__":
    main()
