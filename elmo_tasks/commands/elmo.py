"""`allennlp elmo`, the command that AllenNLP had before 1.0."""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.vectors.elmo_embedder import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, ElmoEmbedder

__all__ = ["FormerElmo"]


@Subcommand.register("elmo")
class FormerElmo(Subcommand):
    """
    Write the ELMo vectors of a text to HDF5, with the options and the layout of AllenNLP before 1.0. For new scripts,
    `elmo-embed` is simpler.
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=self.__doc__, help=self.__doc__)
        add = subparser.add_argument
        add("input_file", type=Path, help="one sentence per line, white space between words")
        add("output_file", type=Path, help="HDF5 file to write")
        formats = subparser.add_mutually_exclusive_group(required=True)
        for name, what in (("all", "all layers"), ("top", "the top layer"), ("average", "the average of the layers")):
            formats.add_argument(f"--{name}", action="store_const", const=name, dest="output_format", help=what)
        add("--vocab-path", help="accepted and ignored")
        add("--file-friendly-logging", action="store_true", help="accepted and ignored")
        add("--options-file", default=DEFAULT_OPTIONS_FILE, help="path or https address")
        add("--weight-file", default=DEFAULT_WEIGHT_FILE, help="path or https address")
        add("--batch-size", type=int, default=64, help="sentences per batch, if they have 64 words")
        add("--cuda-device", type=int, default=-1, help="number of a GPU; -1 (default) is the CPU")
        add("--forget-sentences", action="store_true", help="omit sentence_to_index")
        add("--use-sentence-keys", action="store_true", help="name each array by its sentence, not by its line number")
        add("--force", action="store_true", help="replace an existing output or the parts of an interrupted run")
        subparser.set_defaults(func=_elmo)
        return subparser


def _elmo(arguments: argparse.Namespace) -> None:
    embedder = ElmoEmbedder(arguments.options_file, arguments.weight_file, arguments.cuda_device)
    embedder.embed_file(
        arguments.input_file,
        arguments.output_file,
        arguments.output_format,
        arguments.batch_size,
        arguments.forget_sentences,
        arguments.use_sentence_keys,
        force=arguments.force,
    )
    print(f"wrote {arguments.output_file}")
