"""Subcommands of `allennlp`."""

from elmo_tasks.commands.compare import Compare

__all__ = ["Compare"]
