"""
Relations between two names in a sentence. Importing it registers the reader, the model and the
predictor.
"""

from relations import model, predictor, reader

__all__ = ["HARMLESS", "model", "predictor", "reader"]

HARMLESS = {"DatasetReader": {"relations": "reads lines"}, "Model": {"relations": "tensors"}}
"""
What archives may name that are not trusted, each with the reason why it opens and runs nothing.
"""
