"""`allennlp elmo-demo`: a web page to try ELMo."""

import argparse
import logging
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from allennlp.commands.subcommand import Subcommand

from allennlp_today.trust import add_trust, has_trust_option
from elmo_tasks.commands.arguments import add_device, add_precision
from elmo_tasks.configs import config_variables
from elmo_tasks.files.extras import needs
from elmo_tasks.files.shipped import FIXTURES, MODELS
from elmo_tasks.paper.neighbors import NeighborIndex
from elmo_tasks.paper.static_vectors import StaticVectors
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.web.addresses import check_address, port_number

__all__ = ["ShowDemo"]

# spaCy's Korean rules need a program outside Python; its rules for all languages ("xx") split off
# punctuation.
_RULES = {"ko": "xx"}


@Subcommand.register("elmo-demo")
class ShowDemo(Subcommand):
    """Serve a web page on this machine to try ELMo and trained models."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = parser.add_parser(
            self.name, description=self.__doc__, help=self.__doc__
        )
        add = sub.add_argument
        archives = (
            "models, side by side if they have the same task (default: the English ones in models/)"
        )
        add("archives", nargs="*", type=Path, metavar="ARCHIVE", help=archives)
        add("--bilm", help="a biLM's name or folder (default: ELMO_TASKS_BILM, or small-open)")
        index = "an index of `elmo-neighbors index` (default: a small text)"
        add("--index", type=Path, help=index)
        glove = "file of GloVe vectors (default: the included English ones)"
        add("--glove", type=Path, help=glove)
        add("--language", default="en", help="spaCy's code, for splitting text into words")
        add("--host", default="127.0.0.1", help="address to listen on")
        add("--port", type=port_number, default=7860, help="port to listen on")
        add_device(sub)
        add_trust(sub)
        add_precision(sub)
        sub.set_defaults(func=_serve)
        return sub


def _serve(arguments: argparse.Namespace) -> None:
    if not os.environ.get("ALLENNLP_LOG_LEVEL"):
        # The page's address is printed, not logged.
        logging.getLogger().setLevel(logging.WARNING)
    # Importing Gradio earlier would double the start-up time of every command.
    with needs("demo"):
        from elmo_tasks.web.page import make_page, serve
        from elmo_tasks.web.tasks import DemoTask
        from elmo_tasks.web.word_comparer import EXAMPLES, WordComparer, shipped_index

    check_address(arguments.host, arguments.port)
    language = arguments.language
    rules = _RULES.get(language, language)
    options = {"device": arguments.device, "precision": arguments.precision}
    trusted = has_trust_option(arguments)
    demo_tasks = []
    for path in arguments.archives or _shipped_archives(language):
        demo_tasks.append(DemoTask(path, rules, **options, trusted=trusted))
    bilm = arguments.bilm or config_variables()["ELMO_TASKS_BILM"]
    elmo = Elmo.from_pretrained(bilm, **options)
    glove = arguments.glove or _shipped_glove(language)
    with TemporaryDirectory(prefix="elmo-demo-") as folder:
        if arguments.index:
            index = NeighborIndex(arguments.index, elmo)
        else:
            index = shipped_index(elmo, Path(folder))
        static = None if glove is None else StaticVectors(glove)
        comparer = WordComparer(elmo, rules, index, static)
        page = make_page(comparer, EXAMPLES.get(language, []), demo_tasks)
        serve(page, arguments.host, arguments.port)


def _shipped_archives(language: str) -> list[Path]:
    if language != "en":
        return []
    return sorted(MODELS.glob("*/"))


def _shipped_glove(language: str) -> Path | None:
    if language != "en":
        return None
    return next((FIXTURES / "glove").glob("*.txt.gz"))
