"""`allennlp elmo`, the command that AllenNLP had before 1.0, on the embed job."""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.embed import EmbedOptions, Hdf5Layout, embed_file
from elmo_tasks.vectors.elmo_embedder import (
    DEFAULT_OPTIONS_FILE,
    DEFAULT_WEIGHT_FILE,
    LAYERS_OF_FORMATS,
    WORDS_PER_SENTENCE,
    device_of,
    local_files,
)

__all__ = ["FormerElmo"]


@Subcommand.register("elmo")
class FormerElmo(Subcommand):
    """
    Writes the vectors of a text into HDF5 as AllenNLP's command of this name did, with its options and its layout. New
    scripts are simpler with `elmo-embed`.
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write the ELMo vectors of a text into HDF5, with the options of AllenNLP before 1.0."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("input_file", type=Path, help="one sentence per line, white space between words")
        subparser.add_argument("output_file", type=Path, help="HDF5 file to write")
        which = subparser.add_mutually_exclusive_group(required=True)
        which.add_argument("--all", action="store_const", const="all", dest="output_format", help="all layers")
        which.add_argument("--top", action="store_const", const="top", dest="output_format", help="the top layer")
        which.add_argument(
            "--average", action="store_const", const="average", dest="output_format", help="the average of the layers"
        )
        subparser.add_argument("--vocab-path", help="accepted and ignored")
        subparser.add_argument("--options-file", default=DEFAULT_OPTIONS_FILE, help="path or https address")
        subparser.add_argument("--weight-file", default=DEFAULT_WEIGHT_FILE, help="path or https address")
        subparser.add_argument(
            "--batch-size",
            type=int,
            default=64,
            help="how many sentences of 64 words are computed at once",
        )
        subparser.add_argument(
            "--file-friendly-logging", action="store_true", help="no progress bar, for logs that are files"
        )
        subparser.add_argument("--cuda-device", type=int, default=-1, help="number of a GPU; -1 (default) is the CPU")
        subparser.add_argument("--forget-sentences", action="store_true", help="omit the dataset sentence_to_index")
        subparser.add_argument(
            "--use-sentence-keys", action="store_true", help="name each dataset by its sentence, not by its line number"
        )
        again = subparser.add_mutually_exclusive_group()
        again.add_argument("--force", action="store_true", help="start again, and replace an output that exists")
        again.add_argument("--resume", action="store_true", help="keep what an interrupted run has done")
        subparser.set_defaults(func=_elmo)
        return subparser


def _elmo(arguments: argparse.Namespace) -> None:
    n_lines = embed_file(
        arguments.input_file,
        arguments.output_file,
        EmbedOptions(
            bilm=tuple(map(str, local_files(arguments.options_file, arguments.weight_file))),
            layers=LAYERS_OF_FORMATS[arguments.output_format],
            batch_tokens=arguments.batch_size * WORDS_PER_SENTENCE,
            device=device_of(arguments.cuda_device),
            # AllenNLP's command left the text as it is.
            nfc=False,
        ),
        layout=Hdf5Layout.of_allennlp(arguments.forget_sentences, arguments.use_sentence_keys),
        force=arguments.force,
        resume=arguments.resume,
        progress=False if arguments.file_friendly_logging else None,
    )
    print(f"wrote {arguments.output_file}: {n_lines:,} lines")
