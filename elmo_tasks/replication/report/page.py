"""Pages of HTML from the templates in `templates/`."""

from functools import lru_cache
from typing import Any

__all__ = ["rendered"]


def rendered(template: str, **values: Any) -> str:
    """
    # Parameters

    template
        The name of a file in `templates/`.
    **values
        Its values. Characters that mean something in HTML are escaped in all texts among them.
    """
    text: str = _environment().get_template(template).render(**values)
    return text


@lru_cache(maxsize=1)
def _environment() -> Any:
    # At use: only pages need it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("elmo_tasks.replication.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
