"""A task in a folder of its own: is a sentence a question? Importing it registers its reader, model and predictor."""

from questions import model, reader

__all__ = ["model", "reader"]
