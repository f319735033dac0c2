"""`allennlp elmo-demo`: a page on which people try ELMo."""

import argparse
import importlib.util
from contextlib import suppress
from pathlib import Path

from allennlp.commands.subcommand import Subcommand
from allennlp.common.util import SigTermReceived

from elmo_tasks.environment import config_variables
from elmo_tasks.printable import printable

__all__ = ["ShowDemo"]


@Subcommand.register("elmo-demo")
class ShowDemo(Subcommand):
    """
    Serves a page on this machine: words in their sentences, the predictions of models, and their mixes of layers.

    Registered as a `Subcommand` with name "elmo-demo".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Serve a page to try ELMo and trained models on, on this machine."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument(
            "archives",
            nargs="*",
            type=Path,
            metavar="ARCHIVE",
            help="models; those of one task are next to each other, with their differences marked",
        )
        subparser.add_argument(
            "--compare",
            nargs=2,
            action="append",
            default=[],
            type=Path,
            metavar="ARCHIVE",
            help="two models more, which must be of one task",
        )
        subparser.add_argument(
            "--bilm", help="name of a biLM or its folder (default: ELMO_TASKS_BILM, or the one that ships)"
        )
        subparser.add_argument(
            "--index",
            action="append",
            default=[],
            type=Path,
            metavar="FOLDER",
            help="an index of `allennlp elmo-neighbors index`, one for each layer (default: a small text that ships)",
        )
        subparser.add_argument("--glove", type=Path, help="file of GloVe vectors (default: English ones that ship)")
        subparser.add_argument(
            "--language", help="spaCy's code, for the rules that split words (default: en, or ko for a Korean biLM)"
        )
        subparser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
        subparser.add_argument("--port", type=int, default=7860, help="port to listen at; 0: any (default: 7860)")
        subparser.set_defaults(func=_serve)
        return subparser


def _serve(arguments: argparse.Namespace) -> None:
    if importlib.util.find_spec("gradio") is None:
        raise ImportError("the page is made by Gradio, which is not installed: `pip install 'elmo_tasks[demo]'`")
    # Not before they are needed: Gradio is half of the start.
    from elmo_tasks.demo.demo import loaded_demo
    from elmo_tasks.demo.server import bound_socket, make_app, make_server

    with (
        bound_socket(arguments.host, arguments.port) as bound,
        loaded_demo(
            arguments.archives,
            compared=arguments.compare,
            bilm=arguments.bilm or config_variables()["ELMO_TASKS_BILM"],
            indexes=arguments.index,
            glove=arguments.glove,
            language=arguments.language,
        ) as demo,
    ):
        server = make_server(make_app(demo, arguments.host))
        host, port = bound.getsockname()[:2]
        print(printable(f"ELMo is at http://{host}:{port}/ (Ctrl-C ends it)"), flush=True)
        # SIGTERM is how supervisors of processes end a server.
        with suppress(SigTermReceived):
            server.run(sockets=[bound])
