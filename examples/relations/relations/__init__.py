"""Relations between two names in a sentence. Importing it registers the reader, the model and the predictor."""

from relations import model, predictor, reader

__all__ = ["model", "predictor", "reader"]
