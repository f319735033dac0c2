"""A session on a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["ray_session", "require_ray"]

# Ray's processes must find each other within seconds that nothing can prolong, which on a busy machine can fail.
_STARTS = 3


def require_ray() -> Any:
    """
    # Returns

    `Any`
        The module `ray`, which is imported here and nowhere else.

    # Raises

    `ModuleNotFoundError`
        If Ray is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError(
            "--ray needs Ray, which is not installed: `pip install 'elmo_tasks[ray]'`, or omit --ray", name="ray"
        ) from None
    return ray


@contextmanager
def ray_session(address: str, *, n_cpus: int | None = None) -> Iterator[Any]:
    """
    Connects to a cluster, and disconnects at the end of the block.

    # Parameters

    address
        As `ray.init` takes it: `"auto"` for the cluster that this machine belongs to, `"host:port"`, or `"local"` for
        a new cluster on this machine alone, which ends with the block.
    n_cpus
        Cores of a local cluster. `None`: those of the machine. Another cluster has those that it has.

    # Returns

    `ContextManager[Any]`
        The module `ray`.

    # Raises

    `ModuleNotFoundError`
        If Ray is not installed.
    `ConnectionError`
        If there is no cluster at the address.
    """
    ray = require_ray()
    _connect(ray, address, n_cpus)
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str, n_cpus: int | None) -> None:
    is_local = address == "local"
    local = {"num_cpus": n_cpus, "include_dashboard": False} if is_local else {}
    for starts_left in reversed(range(_STARTS if is_local else 1)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **local)
            return
        except Exception as error:  # Ray raises that very class where a cluster does not start in time.
            # Of what has started of it.
            ray.shutdown()
            if not starts_left:
                rule = (
                    f"Ray must start on this machine (--ray local), but did not in {_STARTS} attempts: run the command "
                    "again when fewer programs run, or without --ray"
                    if is_local
                    else f"--ray must be the address of a running cluster, 'auto' or 'local', but is {address!r}"
                )
                raise ConnectionError(f"{rule}: {error}") from error
