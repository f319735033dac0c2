"""ELMo without AllenNLP: sentences in, arrays out; scikit-learn and spaCy."""

from elmo_tasks.vectors.elmo import Elmo

__all__ = ["Elmo"]
