"""
How do I train a tagger with ELMo on my own sentences, and use it?

The config `ner_elmo.jsonnet` is trained with AllenNLP on the included sample data;
`ELMO_TASKS_DATA` names a folder with your own. A few epochs are enough to see entities; the
published number of epochs is 75.
"""

import json
import logging
import tempfile
from pathlib import Path

from allennlp.commands.train import train_model_from_file
from allennlp.predictors import Predictor

import elmo_tasks.plugin  # noqa: F401
from elmo_tasks.files.shipped import TRAINING_CONFIGS

SENTENCES = ["The train to Paris was late.", "Anna Smith scored twice for Chelsea."]


def main() -> None:
    """Trains, and prints the score and the entities of new sentences."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        train_model_from_file(
            TRAINING_CONFIGS / "ner_elmo.jsonnet",
            run,
            # Smaller batches and fewer epochs than in the paper, for small data.
            overrides={"data_loader.batch_sampler.batch_size": 8, "trainer.num_epochs": 2},
        )
        metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
        print(f"F1 on the dev set: {metrics['best_validation_f1-measure-overall']:.2f}")
        # What `allennlp predict` does; the archive has everything in it.
        predictor = Predictor.from_path(run / "model.tar.gz")
        for sentence in SENTENCES:
            prediction = predictor.predict(sentence)
            spans = ", ".join(f"{span['text']} ({span['label']})" for span in prediction["spans"])
            print(f"{sentence} -> {spans or 'no entities'}")


if __name__ == "__main__":
    main()
