"""Subcommands of `allennlp`."""

from elmo_tasks.commands import coref_conll, data, demo, export, neighbors, perplexity, tables, wsd

__all__ = ["coref_conll", "data", "demo", "export", "neighbors", "perplexity", "tables", "wsd"]
