"""Fixes for other packages that AllenNLP 2.10.1 needs, which have changed, are not installed, or have gone."""
