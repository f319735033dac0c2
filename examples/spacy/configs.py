"""
Writes a config: what `spacy init config` writes for a task, except for the embedding of the words.

    python configs.py ner elmo small-open configs/ner_elmo.cfg
"""

import sys
from pathlib import Path
from typing import Any

from spacy.cli.init_config import init_config

PIPELINES = {"ner": ["ner"], "syntax": ["tagger", "parser"], "textcat": ["textcat"]}
WIDTH = 96


# spaCy's default embedding and encoder.
HASH_EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": WIDTH,
    "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
    "rows": [5000, 1000, 2500, 2500],
    "include_static_vectors": False,
}
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": WIDTH,
    "depth": 4,
    "window_size": 1,
    "maxout_pieces": 3,
}


def embeddings(bilm: str) -> dict[str, dict[str, Any]]:
    """The embeddings of words, by name."""
    elmo = {"@architectures": "elmo_tasks.Elmo.v1", "bilm": bilm, "width": WIDTH}
    return {
        "hash": HASH_EMBED,
        "glove": {**HASH_EMBED, "include_static_vectors": True},
        "elmo": elmo,
        "elmo_hash": {**elmo, "embed": HASH_EMBED},
    }


def main(task: str, embed: str, bilm: str, path: str) -> None:
    """Writes the config of a task with the embedding `hash`, `glove`, `elmo` or `elmo_hash`."""
    # The classifier of texts that is optimized for efficiency has no word vectors.
    optimize = "accuracy" if task == "textcat" else "efficiency"
    pipeline = PIPELINES[task]
    config = init_config(lang="en", pipeline=pipeline, optimize=optimize, silent=True)
    components = config["components"]
    # Every task has spaCy's shared layer and its encoder.
    components["tok2vec"]["model"] = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": embeddings(bilm)[embed],
        "encode": ENCODE,
    }
    for name in pipeline:
        components[name]["model"]["tok2vec"]["width"] = WIDTH
    config["initialize"]["vectors"] = "corpus/glove" if embed == "glove" else None
    # The best of a fixed number of epochs, each of about 100 batches.
    training = config["training"]
    training["max_steps"] = 0
    training["patience"] = 0
    training["eval_frequency"] = 100
    training["batcher"]["size"] = 600
    config["corpora"]["dev"]["limit"] = 1000
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    config.to_disk(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
