"""Command line of the job, for `allennlp elmo-embed` and `python -m elmo_tasks embed`."""

import argparse
import re
from pathlib import Path
from typing import Any

from elmo_tasks.embed_job.formats.output_format import FORMATS
from elmo_tasks.embed_job.job import embed_file
from elmo_tasks.embed_job.options import DTYPES, EmbedOptions
from elmo_tasks.unicode_text import add_nfc_argument

__all__ = ["DESCRIPTION", "add_arguments", "embed"]

DESCRIPTION = "Write the ELMo vectors of a text, a sentence a line, into a file."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the job to a parser."""
    default = EmbedOptions()
    # Python's own takes -3e-1 for an option.
    parser._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE)
    parser.add_argument("text", type=Path, help="file with a sentence a line, UTF-8; plain, .gz or .xz")
    parser.add_argument("output", type=Path, help="file to write: .h5, .hdf5, .npz or .parquet; or a folder, see --ray")
    parser.add_argument("--format", choices=list(FORMATS), help="of the output; default: what its name ends with")
    parser.add_argument("--bilm", default=default.bilm, help="name, or folder with options.json and weights.hdf5")
    parser.add_argument("--layers", type=_layers, default=default.layers, help="mix (default), all, top, or a number")
    parser.add_argument("--weights", type=float, nargs="+", help="of the mix, before their softmax; default: all 0")
    parser.add_argument("--gamma", type=float, default=default.gamma, help="factor of the vectors")
    parser.add_argument("--pool", choices=["mean", "max", "first-last"], help="one vector a sentence, not one a word")
    parser.add_argument(
        "--tokenize",
        action="store_true",
        help="split lines into words by spaCy's rules, as Elmo.embed does; default: at white space",
    )
    add_nfc_argument(parser, default=default.nfc)
    parser.add_argument("--dtype", choices=DTYPES, default=default.dtype, help="of the vectors in the file")
    parser.add_argument("--device", help="cpu, cuda, cuda:1, ...; default: a GPU if there is one, on Ray the CPU")
    parser.add_argument("--precision", choices=["float32", "tf32", "bf16"], help="of the biLM's matrix products")
    parser.add_argument("--batch-tokens", type=int, default=default.batch_tokens, help="words computed at once")
    parser.add_argument(
        "--part-lines",
        type=int,
        default=default.part_lines,
        help="lines that are done together, and lost together if the job is killed",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes, each with its biLM; actors on Ray")
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="run on Ray (an address, auto or local); the output is a folder of Parquet"
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--force", action="store_true", help="start again, and replace an output that is there")
    group.add_argument("--resume", action="store_true", help="resume an interrupted run: what it has done is kept")
    parser.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, help="whether to show it; default: on a terminal"
    )


def embed(arguments: argparse.Namespace) -> None:
    """
    Runs the job of a command line, and prints its size and its speed.

    # Raises

    See `embed_file`.
    """
    names: list[str] = list(EmbedOptions.__dataclass_fields__)
    values: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    values["weights"] = arguments.weights and tuple(arguments.weights)
    report = embed_file(
        arguments.text,
        arguments.output,
        EmbedOptions(**values),
        format=arguments.format,
        force=arguments.force,
        resume=arguments.resume,
        workers=arguments.workers,
        ray=arguments.ray,
        show_progress=arguments.progress,
    )
    if report.was_finished:
        print(
            f"{arguments.output} was finished before, and is whole: {report.n_lines:,} lines, {report.n_bytes:,} bytes"
        )
        return
    speed = f", {report.n_tokens / report.seconds:,.0f} tokens/s" if report.seconds else ""
    print(
        f"wrote {arguments.output}: {report.n_lines:,} lines, {report.n_bytes:,} bytes; this run: "
        f"{report.n_tokens:,} tokens in {report.seconds:,.1f} s{speed}"
    )


def _layers(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdecimal() else text
