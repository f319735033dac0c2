"""Subcommands of `allennlp`."""

from elmo_tasks.commands import data, demo, export, neighbors, perplexity, tables, wsd

__all__ = ["data", "demo", "export", "neighbors", "perplexity", "tables", "wsd"]
