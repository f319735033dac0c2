"""Subcommands of `allennlp`."""

from elmo_tasks.commands import config, data, demo, export, neighbors, perplexity, tables, wsd

__all__ = ["config", "data", "demo", "export", "neighbors", "perplexity", "tables", "wsd"]
