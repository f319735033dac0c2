"""The folders that the docs mention, filled with the small data."""

import gzip
import json
import shutil
from itertools import islice
from pathlib import Path

from tests.paths import CHECKOUT, FIXTURES, TINY_BILM, TRAINING_CONFIGS

# The number of sentences, pairs, trees or documents kept from each file.
_COUNT = {"ner": 12, "snli": 12, "sst": 4, "srl": 8, "coref": 2, "pos": 8, "lm": 40}


def make_home(home: Path) -> Path:
    """
    Makes a home with `data/`, `elmo/original/`, `WordNet-3.0/` and a cache of biLMs, named as in
    the docs. Returns the working directory, which has `training_configs/`, `fixtures/`, `results/`
    and a text.
    """
    data, work = home / "data", home / "work"
    for folder in ("ner", "snli", "sst", "srl", "coref", "pos", "lm"):
        for file in (path for path in (FIXTURES / folder).rglob("*") if path.is_file()):
            _write(data / file.relative_to(FIXTURES), _first(file, folder))
    for file in (FIXTURES / "squad").iterdir():
        content = json.loads(file.read_text(encoding="utf-8"))
        articles = [
            {**article, "paragraphs": article["paragraphs"][:1]} for article in content["data"][:2]
        ]
        _write(data / "squad" / file.name, json.dumps({**content, "data": articles}))
    shutil.copytree(FIXTURES / "wsd", data / "wsd")
    shutil.copytree(FIXTURES / "wsd" / "wordnet", home / "WordNet-3.0")
    (glove,) = (FIXTURES / "glove").glob("*.txt.gz")
    with gzip.open(glove, "rt", encoding="utf-8") as lines:
        _write(data / "glove" / "glove.6B.100d.txt", "".join(islice(lines, 300)))
    for folder in (home / "elmo" / "original", home / ".cache" / "elmo_tasks" / "original"):
        shutil.copytree(TINY_BILM, folder)
    shutil.copytree(TRAINING_CONFIGS, work / "training_configs")
    (work / "fixtures").symlink_to(FIXTURES)
    (work / "results").symlink_to(CHECKOUT / "results")
    (work / "corpus.txt").write_text("She sat on the river bank .\nThe bank is closed .\n")
    return work


def _first(file: Path, kind: str) -> str:
    text = file.read_text(encoding="utf-8")
    if kind == "coref":
        documents = text.split("#end document")
        return "#end document".join(documents[: _COUNT[kind]]) + "#end document\n"
    if kind == "srl":
        return "\n\n".join(text.split("\n\n")[: _COUNT[kind]]) + "\n\n#end document\n"
    separator = "\n\n" if kind in ("ner", "pos") else "\n"
    return separator.join(text.split(separator)[: _COUNT[kind] + (kind == "ner")]) + separator


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
