"""Labels that must be those of the training."""

from allennlp.data import Vocabulary
from allennlp.data.fields import LabelField

__all__ = ["KnownLabelField"]


class KnownLabelField(LabelField):
    """
    A `LabelField` that says where a label stands which the vocabulary does not have. AllenNLP's raises a bare
    `KeyError`.

    # Parameters

    label : `str`
        The label.
    where : `str`
        What an error calls its place: the file and the line.
    """

    def __init__(self, label: str, where: str) -> None:
        super().__init__(label)
        self._where = where

    def index(self, vocab: Vocabulary) -> None:
        """
        # Raises

        `ValueError`
            If the vocabulary does not have the label.
        """
        known = vocab.get_token_to_index_vocabulary(self._label_namespace)
        if self.label not in known:
            raise ValueError(
                f"{self._where}: the label must be one of the training ({', '.join(known)}), but is {self.label!r}: "
                "leave labels out if you want predictions only"
            )
        super().index(vocab)
