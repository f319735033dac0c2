"""What to install for a library that is optional."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from elmo_tasks.version import RELEASE, __version__

__all__ = ["check_installed", "needs"]

_ALLENNLP = (
    f"pip install 'elmo_tasks[allennlp]' {RELEASE}/allennlp_today-{__version__}-py3-none-any.whl, then pip install "
    "--no-deps allennlp==2.10.1 allennlp-models==2.10.1 'cached-path>=1.8.10'"
    if RELEASE
    else "in a checkout, run pip install -e '.[allennlp]', then pip install --no-deps -r allennlp.txt"
)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Adds the name of an extra of this package to the error of a missing module in the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("elmo_tasks"):
            remedy = (
                _ALLENNLP
                if str(error.name).startswith("allennlp")
                else f"pip install 'elmo_tasks[{extra}]'"
            )
            error.msg = f"{error.name} is not installed: {remedy}"
        raise


def check_installed(module: str, extra: str) -> None:
    """
    Raises an error that names the extra if a module is missing: before hours of work, not after.
    """
    with needs(extra):
        import_module(module)
