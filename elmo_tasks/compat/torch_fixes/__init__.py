"""Fixes for what has changed in torch since AllenNLP 2.10.1."""
