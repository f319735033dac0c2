"""Tags of words that must be those of the training."""

from collections.abc import Sequence

from allennlp.data import Vocabulary
from allennlp.data.fields import SequenceLabelField, TextField

__all__ = ["KnownTagsField"]


class KnownTagsField(SequenceLabelField):
    """
    A `SequenceLabelField` that says where a tag stands which the vocabulary does not have. AllenNLP's raises a bare
    `KeyError`.

    # Parameters

    tags : `Sequence[str]`
        A tag for each word.
    text : `TextField`
        The words.
    where : `str`
        What an error calls the place of the sentence: the file and the line.
    """

    def __init__(self, tags: Sequence[str], text: TextField, where: str) -> None:
        super().__init__(list(tags), text)
        self._where = where

    def index(self, vocab: Vocabulary) -> None:
        """
        # Raises

        `ValueError`
            If the vocabulary does not have a tag.
        """
        known = vocab.get_token_to_index_vocabulary(self._label_namespace)
        for token, tag in zip(self.sequence_field, self.labels, strict=True):
            if tag not in known:
                raise ValueError(
                    f"{self._where}: tags must be those of the training ({', '.join(known)}), but {token.text!r} has "
                    f"{tag!r}: read the column that the model was trained on, or leave tags out (write _) if you want "
                    "predictions only"
                )
        super().index(vocab)
