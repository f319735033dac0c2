"""What to install for a library that is optional."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from elmo_tasks.version import RELEASE, __version__

__all__ = ["check_installed", "needs"]

_ALLENNLP = (
    "in a checkout, run pip install -e '.[allennlp]', then pip install --no-deps -r allennlp.txt"
)
if RELEASE:
    _ALLENNLP = (
        "pip install 'elmo_tasks[allennlp]' "
        f"{RELEASE}/allennlp_today-{__version__}-py3-none-any.whl, then pip install "
        "--no-deps allennlp==2.10.1 allennlp-models==2.10.1 'cached-path>=1.8.10'"
    )


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Adds the name of an extra of this package to the error of a missing module in the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = str(error.name)
        if not module.startswith("elmo_tasks"):
            remedy = f"pip install 'elmo_tasks[{extra}]'"
            if module.startswith("allennlp"):
                remedy = _ALLENNLP
            error.msg = f"{module} is not installed: {remedy}"
        raise


def check_installed(module: str, extra: str) -> None:
    """
    Raises an error that names the extra if a module is missing: before hours of work, not after.
    """
    with needs(extra):
        import_module(module)
