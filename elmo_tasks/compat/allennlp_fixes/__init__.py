"""Fixes for AllenNLP 2.10.1 itself, which is archived: what it does to files, to errors and to processes."""
