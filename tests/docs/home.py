"""The folders that the docs mention, filled with the small data."""

import gzip
import json
import shutil
from itertools import islice
from pathlib import Path

from tests.paths import CHECKOUT, FIXTURES, TINY_BILM, TRAINING_CONFIGS

# The number of sentences, pairs, trees or documents kept from each file.
_COUNT = {
    # With the line that begins the document.
    "ner": 13,
    "snli": 12,
    "sst": 4,
    "srl": 8,
    "coref": 2,
    "pos": 8,
    "lm": 40,
}
_SEPARATORS = {"coref": "#end document", "srl": "\n\n", "ner": "\n\n", "pos": "\n\n"}


def make_home(home: Path) -> Path:
    """
    Makes a home with `data/`, `elmo/original/`, `WordNet-3.0/` and a cache of biLMs, named as in
    the docs. Returns the working directory, which has `training_configs/`, `fixtures/`, `results/`
    and a text.
    """
    data = home / "data"
    work = home / "work"
    for folder in _COUNT:
        for file in (FIXTURES / folder).rglob("*"):
            if file.is_file():
                _write(data / file.relative_to(FIXTURES), _beginning(file, folder))
    for file in (FIXTURES / "squad").iterdir():
        content = json.loads(file.read_text(encoding="utf-8"))
        content["data"] = content["data"][:2]
        for article in content["data"]:
            article["paragraphs"] = article["paragraphs"][:1]
        _write(data / "squad" / file.name, json.dumps(content))
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


def _beginning(file: Path, folder: str) -> str:
    text = file.read_text(encoding="utf-8")
    separator = _SEPARATORS.get(folder, "\n")
    items = text.split(separator)[: _COUNT[folder]]
    beginning = separator.join(items) + separator
    if folder == "coref":
        return beginning + "\n"
    if folder == "srl":
        return beginning + "#end document\n"
    return beginning


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
