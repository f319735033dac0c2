"""Actors on a Ray cluster that embed parts."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmo_tasks.embed_job.options import EmbedOptions
from elmo_tasks.embed_job.part_worker import PartDone, PartWork, PartWorker
from elmo_tasks.embed_job.text_parts import LinePart
from elmo_tasks.ray_session import ray_session, require_ray
from elmo_tasks.vectors.pretrained import NAMED_BILMS

__all__ = ["embed_on_ray", "options_on_ray"]

# How often a part is tried again whose actor died. An actor restarts as often as machines come and go, but a part that
# kills each actor must not be tried forever.
_RETRIES = 3


def options_on_ray(options: EmbedOptions) -> EmbedOptions:
    """
    An actor computes on the device of the options, by default on the CPU: machines of a cluster differ. It does not run
    in the folder that the job was started in.
    """
    bilm = options.bilm
    if isinstance(bilm, tuple):
        bilm = str(Path(bilm[0]).absolute()), str(Path(bilm[1]).absolute())
    elif bilm not in NAMED_BILMS and Path(bilm).is_dir():
        bilm = str(Path(bilm).absolute())
    return replace(options, bilm=bilm, device=options.device or "cpu")


# Ray's actors and not Ray Data: its writers choose the names of files, so that a part that was written twice can be
# there twice, and it needs pandas.
def embed_on_ray(address: str, n_actors: int | None, work: PartWork, parts: Iterable[LinePart]) -> Iterator[PartDone]:
    """
    Embeds parts in actors, each with its biLM and one core, or one GPU where `options.device` is of CUDA. An actor that
    dies restarts, maybe on another machine, and its part is embedded again.

    # Parameters

    address
        See `ray_session`.
    n_actors
        How many. `None`: as many as the cluster has cores, or GPUs.
    work
        Its folder must be one that all machines see.
    parts
        Read no further ahead than the actors need.

    # Returns

    `Iterator[PartDone]`
        As they are done, in any order.

    # Raises

    `ConnectionError`
        If there is no cluster at the address.
    `RuntimeError`
        If a part's actors died four times, the cluster has no GPU for them, or Ray fails in another way.
    """
    ray = require_ray()
    try:
        # Actors wait for a core: on a local cluster there are as many as are asked for.
        with ray_session(address, n_cpus=n_actors):
            work = replace(work, options=options_on_ray(work.options), folder=work.folder.resolve())
            yield from _embed(ray, n_actors, work, parts)
    except ray.exceptions.RayTaskError as error:
        # The actor's error without Ray's report of its place.
        raise error.cause from None
    except ray.exceptions.RayActorError as error:
        raise RuntimeError(f"the actors of a part died {_RETRIES + 1} times, the last error was: {error}") from error
    except ray.exceptions.RayError as error:
        raise RuntimeError(f"Ray failed ({type(error).__name__}: {error}): resume with --resume") from error


def _embed(ray: Any, n_actors: int | None, work: PartWork, parts: Iterable[LinePart]) -> Iterator[PartDone]:
    is_cuda = str(work.options.device).startswith("cuda")
    resource = "GPU" if is_cuda else "CPU"
    n_actors = n_actors or int(ray.cluster_resources().get(resource, 0))
    if n_actors == 0 or (is_cuda and not ray.cluster_resources().get("GPU")):
        raise RuntimeError(
            f"a cluster must have at least one {resource} for --device {work.options.device}, but this one has 0"
        )
    actor_class = ray.remote(num_cpus=1, num_gpus=1 if is_cuda else 0, max_restarts=-1, max_task_retries=_RETRIES)(
        PartWorker
    )
    actors = [actor_class.remote(work, max_threads=None) for _ in range(n_actors)]
    running: dict[Any, Any] = {}
    for part in parts:
        # Two for each actor, so that no actor waits for its next part.
        if len(running) < 2 * n_actors:
            actor = actors[len(running) % n_actors]
        else:
            (done,), _ = ray.wait(list(running), num_returns=1)
            actor = running.pop(done)
            yield ray.get(done)
        running[actor.run.remote(part)] = actor
    while running:
        (done,), _ = ray.wait(list(running), num_returns=1)
        running.pop(done)
        yield ray.get(done)
