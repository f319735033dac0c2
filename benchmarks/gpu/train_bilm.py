"""
Trains a biLM on a GPU, without AllenNLP and in pieces: `python benchmarks/gpu/train_bilm.py DATA RUN --minutes 8`.

`DATA` is what `lm_data.py` has packed. The same command resumes from the last checkpoint in `RUN`, until it says that
the training is finished; with `--export FOLDER` it then writes the biLM with its softmax in the public format, and
prints the perplexity of the test text. Its exit status is 3 as long as there are steps left.
"""

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path

import torch
from lm_data import LmData, read_text
from lm_training import Settings, Training, perplexities

from elmo_tasks.files.atomic_files import atomic_folder
from elmo_tasks.gpu_check.part import SIZES
from elmo_tasks.printable import one_line


def export(training: Training, data: LmData, folder: Path, dtype: torch.dtype) -> dict[str, float]:
    """Writes the biLM, and reads it again to measure it: what is written may be rounded."""
    names = ("options.json", "weights.hdf5", "vocab.txt")
    with atomic_folder(folder, names) as new:
        options_file, weight_file, word_file = (new / name for name in names)
        softmax = {name: weight.cpu() for name, weight in training.softmax.state_dict().items()}
        words = data.vocabulary.words
        training.bilm.save(options_file, weight_file, softmax=softmax, words=words, dtype=dtype)
        data.vocabulary.save(word_file)
    with torch.no_grad():
        for weight in (*training.bilm.parameters(), *training.softmax.parameters()):
            weight.copy_(weight.to(dtype))
    training.bilm.requires_grad_(False)
    return perplexities(training.bilm, training.softmax, data, read_text(data.folder, "test"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("run", type=Path, help="folder of the checkpoint")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=8.0, help="of training in this call")
    parser.add_argument("--checkpoint-minutes", type=float, default=2.0)
    parser.add_argument("--every", type=int, default=100, help="steps from one line of progress to the next")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="where to write the biLM once it is finished")
    parser.add_argument("--dtype", choices=["float16", "float32"], default="float16", help="of the exported weights")
    choices = {"size": list(SIZES), "schedule": ["linear", "cosine"], "precision": ["bf16", "tf32", "float32"]}
    for setting in fields(Settings):
        option = f"--{setting.name.replace('_', '-')}"
        parser.add_argument(
            option, type=type(setting.default), default=setting.default, choices=choices.get(setting.name)
        )
    arguments = parser.parse_args()
    settings = Settings(**{setting.name: getattr(arguments, setting.name) for setting in fields(Settings)})
    device = torch.device(arguments.device)
    data = LmData(arguments.data, settings.max_words, device)
    training = Training(settings, data, read_text(arguments.data, "train"), device)
    arguments.run.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.run / "checkpoint.pt"
    if checkpoint.exists():
        training.load(checkpoint)
        print(f"resumes after step {training.step:,}", flush=True)
    is_finished = training.run(
        checkpoint, minutes=arguments.minutes, checkpoint_minutes=arguments.checkpoint_minutes, every=arguments.every
    )
    training.bilm.eval()
    dev = perplexities(training.bilm, training.softmax, data, read_text(arguments.data, "dev"))
    print(json.dumps({"step": training.step, "text": "dev", **dev}), flush=True)
    if not is_finished:
        print("not finished: run the same command again", flush=True)
        return 3
    if arguments.export is not None:
        test = export(training, data, arguments.export, getattr(torch, arguments.dtype))
        print(json.dumps({"step": training.step, "text": "test", "exported": True, **test}), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f"error: {one_line(error)}")
