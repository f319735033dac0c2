"""Small trainings of AllenNLP's own tagger, and what they write."""

import json
from pathlib import Path
from typing import Any

from allennlp.commands.train import train_model
from allennlp.common import Params

TRAIN = [
    "Ann###N sings###V",
    "Ben###N reads###V books###N",
    "books###N sing###V",
    "we###P read###V",
]
DEV = ["Ann###N reads###V books###N", "you###P read###V"]


class Run:
    """The files, the config and the folder of a training."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder / "run"
        self.train, self.dev = folder / "train.tsv", folder / "dev.tsv"
        self.write(self.train, TRAIN)
        self.write(self.dev, DEV)
        embedders = {"tokens": {"type": "embedding", "embedding_dim": 4}}
        self.config: dict[str, Any] = {
            "dataset_reader": {"type": "sequence_tagging"},
            "train_data_path": str(self.train),
            "validation_data_path": str(self.dev),
            "model": {
                "type": "simple_tagger",
                "text_field_embedder": {"token_embedders": embedders},
                "encoder": {"type": "lstm", "input_size": 4, "hidden_size": 4},
            },
            "data_loader": {"batch_size": 2},
            # Nothing is learned, so the loss changes only with the weights of other words.
            "trainer": {"num_epochs": 1, "optimizer": {"type": "sgd", "lr": 0.0}},
        }

    def write(self, path: Path, lines: list[str]) -> None:
        path.write_text("\n".join(lines) + "\n")

    def start(self) -> dict[str, Any]:
        return self._train(recover=False)

    def recover(self, **trainer: Any) -> dict[str, Any]:
        """Continues with one more epoch, and other settings of the trainer."""
        self.config["trainer"] |= {
            "num_epochs": self.config["trainer"]["num_epochs"] + 1,
            **trainer,
        }
        (self.folder / "config.json").write_text(json.dumps(self.config))
        return self.resume()

    def resume(self) -> dict[str, Any]:
        return self._train(recover=True)

    def _train(self, *, recover: bool) -> dict[str, Any]:
        params = Params(json.loads(json.dumps(self.config)))
        train_model(params, str(self.folder), recover=recover, return_model=False)
        return json.loads((self.folder / "metrics.json").read_text())

    def vocabulary(self) -> dict[str, str]:
        """The words of each namespace. The namespaces without padding are a set, in any order."""
        texts = {}
        for file in (self.folder / "vocabulary").glob("*.txt"):
            if file.name != "non_padded_namespaces.txt":
                texts[file.name] = file.read_text()
        return texts
