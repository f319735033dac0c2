"""`allennlp elmo-demo`: a page on which people try ELMo."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.environment import config_variables

__all__ = ["ShowDemo"]


@Subcommand.register("elmo-demo")
class ShowDemo(Subcommand):
    """Serves a page on this machine: words in their sentences, and the predictions of models."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Serve a page to try ELMo and trained models on, on this machine."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        add = subparser.add_argument
        add("archives", nargs="*", type=Path, metavar="ARCHIVE", help="models; those of one task are side by side")
        add("--bilm", help="name of a biLM or its folder (default: ELMO_TASKS_BILM, or the one that ships)")
        add("--index", type=Path, help="folder of `allennlp elmo-neighbors index` (default: a small text that ships)")
        add("--glove", type=Path, help="file of GloVe vectors (default: English ones that ship)")
        add("--language", help="spaCy's code, for the rules that split words (default: en)")
        add("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
        add("--port", type=int, default=7860, help="port to listen at (default: 7860)")
        subparser.set_defaults(func=_serve)
        return subparser


def _serve(arguments: argparse.Namespace) -> None:
    # Gradio is half of the start.
    from elmo_tasks.demo.page import make_page, serve

    with TemporaryDirectory(prefix="elmo-demo-") as folder:
        page = make_page(
            arguments.archives,
            bilm=arguments.bilm or config_variables()["ELMO_TASKS_BILM"],
            index=arguments.index,
            glove=arguments.glove,
            language=arguments.language,
            folder=Path(folder, "index"),
        )
        serve(page, arguments.host, arguments.port)
