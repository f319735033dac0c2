"""
The perplexity of a text under biLMs that start each sentence from another state: see README.md in this folder.
`python benchmarks/start_states/perplexity_by_start.py RUN... --text TEXT --output perplexity.json`.

Each run is a folder of `allennlp train` with a model `elmo_bilm`. Its sentences begin from the zero state, and from the
settled one. If it was trained on running text, this is also read as there: in windows that begin in the state which the
last one left, which drop what does not fill a window at the end.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from allennlp.common.checks import ConfigurationError
from allennlp.common.plugins import import_plugins
from allennlp.data import DataLoader
from allennlp.models import Archive, load_archive
from allennlp.training.util import evaluate

from elmo_tasks.analysis import LanguageModel, summary
from elmo_tasks.data import LmText
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.models import BilmLanguageModel
from elmo_tasks.replication.train.surroundings import commit, machine

_NAMES = ("forward_perplexity", "backward_perplexity", "perplexity", "unknown_share")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of finished trainings")
    parser.add_argument("--text", type=Path, required=True, help="a tokenised sentence on each line")
    parser.add_argument("--output", type=Path, required=True, help="a file of JSON")
    arguments = parser.parse_args()
    import_plugins()
    try:
        write_perplexities(arguments.runs, arguments.text, arguments.output)
    except (ValueError, OSError, ConfigurationError) as error:
        sys.exit(f"error: {error}")


def write_perplexities(runs: Sequence[Path], text: Path, output: Path) -> None:
    """As JSON, with what they are of."""
    digest = hashlib.sha256(text.read_bytes()).hexdigest()
    rows = [row for run in runs for row in perplexities(run, text)]
    about = {"sentences": sum(1 for _ in LmText(text)), "text_sha256": digest, "commit": commit(), "machine": machine()}
    output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(output) as temporary:
        temporary.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", "utf-8")


def perplexities(run: Path, text: Path) -> list[dict[str, Any]]:
    """Of a text, from each state; printed too."""
    archive = load_archive(run)
    model = archive.model
    if not isinstance(model, BilmLanguageModel):
        raise ValueError(f"the model of {run} must be an 'elmo_bilm', but is a {type(model).__name__}")
    found = {f"{state} state": of_sentences(model, text, state) for state in ("zero", "settled")}
    if model.bilm.stateful:
        found["running text"] = of_running_text(archive, text)
    rows = []
    for start, scores in found.items():
        row = {"biLM": run.name, "start": start, **{name: scores[name] for name in _NAMES}}
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def of_sentences(model: BilmLanguageModel, text: Path, start_state: str) -> Mapping[str, float]:
    """Each sentence alone, from the zero or the settled state."""
    with TemporaryDirectory() as folder:
        options_file, weights, words = (Path(folder) / name for name in ("options.json", "weights.hdf5", "vocab.txt"))
        model.bilm.save(options_file, weights, softmax=model.public_softmax(), words=model.word_list().words)
        model.word_list().save(words)
        options = json.loads(options_file.read_text("utf-8"))
        options["lstm"]["start_state"] = start_state
        options_file.write_text(json.dumps(options), "utf-8")
        return summary(LanguageModel(folder).score(LmText(text)))


def of_running_text(archive: Archive, text: Path) -> Mapping[str, float]:
    """In the windows of the training."""
    loader = DataLoader.from_params(
        archive.config["validation_data_loader"], reader=archive.validation_dataset_reader, data_path=str(text)
    )
    loader.index_with(archive.model.vocab)
    return evaluate(archive.model, loader)


if __name__ == "__main__":
    main()
