"""A task in a folder of its own: is a sentence a question? Importing it registers its reader, model and predictor."""

from questions import model, reader

__all__ = ["HARMLESS", "model", "reader"]

HARMLESS = {"DatasetReader": {"questions": "reads lines"}, "Model": {"questions": "tensors"}}
"""What archives may name that are not trusted, each with the reason why it opens and runs nothing."""
