"""The verbs of a sentence, by a tagger for parts of speech."""

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from allennlp.common.checks import ConfigurationError
from allennlp.data import Token
from allennlp.models.archival import load_archive

from elmo_tasks.predictors.pos_tagger import PosTagger

__all__ = ["VerbFinder"]

logger = logging.getLogger(__name__)

_SPACY_MODEL = "en_core_web_sm"

# Auxiliaries too, as AllenNLP's predictor takes them in English; those of the Penn Treebank are VB, VBD, ..., and MD.
_UNIVERSAL = frozenset({"VERB", "AUX"})

# The parts of spaCy's models that set universal tags.
_TAGGERS = frozenset({"tagger", "morphologizer", "attribute_ruler"})


class VerbFinder:
    """
    Finds the verbs and auxiliaries of a sentence with a tagger for parts of speech, which is loaded when it is first
    needed.

    # Parameters

    spacy_model : `str`, optional
        A model of spaCy with a tagger, installed or a folder. `None`: `en_core_web_sm` if it is installed, and
        otherwise `PosTagger`, with a warning in the log.
    pos_model : `str`, optional
        An archive of a tagger that is used instead of spaCy's, with universal tags or those of the Penn Treebank:
        trained with `training_configs/pos_layer.jsonnet`, or any of AllenNLP's `simple_tagger`.
    """

    def __init__(self, spacy_model: str | None = None, pos_model: str | None = None) -> None:
        self._spacy_model = spacy_model
        self._pos_model = pos_model

    def __call__(self, words: Sequence[str]) -> list[int]:
        """
        # Returns

        `List[int]`
            The places of the verbs, counted from 0.

        # Raises

        `ConfigurationError`
            If the tagger that was asked for does not exist, or has no tags for verbs.
        """
        if not words:
            return []
        return [index for index, tag in enumerate(self._tags(words)) if _is_verb(tag)]

    def _tags(self, words: Sequence[str]) -> list[str]:
        if self._pos_model is not None:
            return self._archive_tags(words)
        return self._spacy_tags(words) if self._ours is None else self._ours(words)

    def _archive_tags(self, words: Sequence[str]) -> list[str]:
        model, reader = self._archive
        instance = reader.text_to_instance([Token(word) for word in words])
        reader.apply_token_indexers(instance)
        tags: list[str] = model.forward_on_instance(instance)["tags"]
        return tags

    def _spacy_tags(self, words: Sequence[str]) -> list[str]:
        from spacy.tokens import Doc

        tagged = self._spacy(Doc(self._spacy.vocab, words=list(words)))
        return [token.pos_ for token in tagged]

    @cached_property
    def _archive(self) -> tuple[Any, Any]:
        archive = load_archive(str(self._pos_model))
        known = archive.model.vocab.get_token_to_index_vocabulary("labels")
        if not any(map(_is_verb, known)):
            raise ConfigurationError(
                f"the tagger {self._pos_model} must have tags for verbs, VERB or VB, but has {', '.join(known)[:200]}"
            )
        return archive.model.eval(), archive.validation_dataset_reader

    @cached_property
    def _ours(self) -> PosTagger | None:
        """The tagger that ships, where it is needed."""
        import spacy

        if self._spacy_model is not None or spacy.util.is_package(_SPACY_MODEL):
            return None
        logger.warning(
            "The spaCy model %s is not installed: the verbs of sentences are found by the smaller tagger that comes "
            "with elmo_tasks, for English. For spaCy's, run `python -m spacy download %s`.",
            _SPACY_MODEL,
            _SPACY_MODEL,
        )
        return PosTagger()

    @cached_property
    def _spacy(self) -> Any:
        import spacy

        name = self._spacy_model or _SPACY_MODEL
        if not Path(name).is_dir() and not spacy.util.is_package(name):
            raise ConfigurationError(_no_tagger(name, "is not installed"))
        model = spacy.load(name, exclude=["ner", "parser"])
        if not _TAGGERS & set(model.pipe_names):
            raise ConfigurationError(_no_tagger(name, "has no tagger"))
        return model


def _no_tagger(name: str, problem: str) -> str:
    return (
        f"a sentence without its predicates needs a tagger that finds them, but the spaCy model {name!r} {problem}: "
        "run `python -m spacy download en_core_web_sm`, or omit spacy_model for the tagger that comes with elmo_tasks, "
        "or name an archive of training_configs/pos_layer.jsonnet with the predictor's argument pos_model, or give "
        'lines with "words" and "predicates"'
    )


def _is_verb(tag: str) -> bool:
    return tag in _UNIVERSAL or tag == "MD" or tag.startswith("VB")
