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


def hash_embed(glove: bool = False) -> dict[str, Any]:
    """spaCy's default embedding, with static vectors or without."""
    return {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": WIDTH,
        "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
        "rows": [5000, 1000, 2500, 2500],
        "include_static_vectors": glove,
    }


def main(task: str, embed: str, bilm: str, path: str) -> None:
    """Writes the config of a task with the embedding `hash`, `glove`, `elmo` or `elmo_hash`."""
    # The classifier of texts that is optimized for efficiency has no word vectors.
    optimize = "accuracy" if task == "textcat" else "efficiency"
    config = init_config(lang="en", pipeline=PIPELINES[task], optimize=optimize, silent=True)
    elmo = {"@architectures": "elmo_tasks.Elmo.v1", "bilm": bilm, "width": WIDTH}
    # Every task has spaCy's shared layer and its encoder.
    config["components"]["tok2vec"]["model"] = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "hash": hash_embed(),
            "glove": hash_embed(glove=True),
            "elmo": elmo,
            "elmo_hash": {**elmo, "embed": hash_embed()},
        }[embed],
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": WIDTH,
            "depth": 4,
            "window_size": 1,
            "maxout_pieces": 3,
        },
    }
    for component in PIPELINES[task]:
        config["components"][component]["model"]["tok2vec"]["width"] = WIDTH
    config["initialize"]["vectors"] = "corpus/glove" if embed == "glove" else None
    # The best of a fixed number of epochs, each of about 100 batches.
    config["training"] |= {"max_steps": 0, "patience": 0, "eval_frequency": 100}
    config["training"]["batcher"]["size"] = 600
    config["corpora"]["dev"]["limit"] = 1000
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    config.to_disk(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
