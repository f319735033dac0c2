"""`allennlp elmo`, the command that AllenNLP had before 1.0, on the embed job."""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.embed_job import EmbedOptions, embed_file
from elmo_tasks.embed_job.formats.output_format import allennlp_format
from elmo_tasks.files.hdf5_vectors import VectorLayout, check_sentence_keys
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.vectors.addresses import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, local_files
from elmo_tasks.vectors.elmo_embedder import DEFAULT_BATCH_SIZE, LAYERS_OF_FORMATS, batch_tokens_of, device_of

__all__ = ["FormerElmo"]


@Subcommand.register("elmo")
class FormerElmo(Subcommand):
    """
    Writes the vectors of a text into HDF5 as AllenNLP's command of this name did, with its options and its layout. New
    scripts are simpler with `elmo-embed`.

    Registered as a `Subcommand` with name "elmo".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write the ELMo vectors of a text into HDF5, with the options of AllenNLP before 1.0."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("input_file", type=Path, help="a sentence a line, white space between its words")
        subparser.add_argument("output_file", type=Path, help="HDF5 file to write")
        which = subparser.add_mutually_exclusive_group(required=True)
        which.add_argument("--all", action="store_const", const="all", dest="output_format", help="all layers")
        which.add_argument("--top", action="store_const", const="top", dest="output_format", help="the top layer")
        which.add_argument(
            "--average", action="store_const", const="average", dest="output_format", help="the average of the layers"
        )
        subparser.add_argument("--vocab-path", help="accepted and not read, as ever")
        subparser.add_argument("--options-file", default=DEFAULT_OPTIONS_FILE, help="path or https address")
        subparser.add_argument("--weight-file", default=DEFAULT_WEIGHT_FILE, help="path or https address")
        subparser.add_argument(
            "--batch-size",
            type=int,
            default=DEFAULT_BATCH_SIZE,
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
        again.add_argument("--force", action="store_true", help="start again, and replace an output that is there")
        again.add_argument("--resume", action="store_true", help="resume an interrupted run: what it has done is kept")
        subparser.set_defaults(func=_elmo)
        return subparser


def _elmo(arguments: argparse.Namespace) -> None:
    layout = VectorLayout.of_allennlp(
        forget_sentences=arguments.forget_sentences, use_sentence_keys=arguments.use_sentence_keys
    )
    batch_tokens, device = batch_tokens_of(arguments.batch_size), device_of(arguments.cuda_device)
    if layout.sentence_keys:
        # The job puts one space between words.
        lines = ((number, " ".join(line.split())) for number, line in numbered_lines(arguments.input_file))
        check_sentence_keys(lines, arguments.input_file)
    options_file, weight_file = local_files(arguments.options_file, arguments.weight_file)
    options = EmbedOptions(
        bilm=(str(options_file), str(weight_file)),
        layers=LAYERS_OF_FORMATS[arguments.output_format],
        batch_tokens=batch_tokens,
        device=device,
        # As the text is: AllenNLP's command left it so.
        nfc=False,
    )
    report = embed_file(
        arguments.input_file,
        arguments.output_file,
        options,
        format=allennlp_format(layout),
        force=arguments.force,
        resume=arguments.resume,
        show_progress=False if arguments.file_friendly_logging else None,
    )
    print(f"wrote {arguments.output_file}: {report.n_lines:,} lines, {report.n_bytes:,} bytes")
