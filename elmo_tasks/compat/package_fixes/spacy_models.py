"""
Blank spaCy models in place of models that are not installed.
"""

import logging
import os
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = ["use_blank_spacy_models"]

logger = logging.getLogger(__name__)


def use_blank_spacy_models(util: Module) -> None:
    """
    Symptom: the tokenizer that most readers have by default, `spacy`, downloads a model when it is first built,
    and fails after a long time where there is no network.

    Cause: `allennlp.common.util.get_spacy_model`. Splitting text into words needs no model: spaCy's rules are part of
    the package and give the same tokens as `en_core_web_sm`. So a model that is not installed is replaced by the
    blank one of its language, with one warning; a parser or an entity recogniser cannot be replaced and is an
    error. Nothing is ever downloaded. Seen with AllenNLP 2.10.1 and spaCy 3.8.
    """
    warned: set[str] = set()

    def get_spacy_model(spacy_model_name: str, pos_tags: bool = True, parse: bool = False, ner: bool = False) -> Any:
        options = (spacy_model_name, pos_tags, parse, ner)
        if options not in util.LOADED_SPACY_MODELS:
            try:
                model = _load(spacy_model_name, pos_tags, parse, ner)
            except OSError as error:
                # A path names one model, which a blank model cannot replace.
                if _is_path(spacy_model_name):
                    raise
                if parse or ner:
                    raise OSError(_not_installed(spacy_model_name, parse, ner)) from error
                model = _blank(spacy_model_name, error)
                if spacy_model_name not in warned:
                    warned.add(spacy_model_name)
                    logger.warning(
                        "The spaCy model '%s' is not installed and is replaced by the blank model of its language. "
                        "It gives the same tokens, but no part-of-speech tags and no lemmas. If you need them: "
                        "`python -m spacy download %s`.",
                        spacy_model_name,
                        spacy_model_name,
                    )
            util.LOADED_SPACY_MODELS[options] = model
        return util.LOADED_SPACY_MODELS[options]

    util.get_spacy_model = get_spacy_model


def _load(name: str, pos_tags: bool, parse: bool, ner: bool) -> Any:
    import spacy

    wanted = {"tagger": pos_tags, "parser": parse, "ner": ner}
    return spacy.load(name, disable=["textcat", *(pipe for pipe, is_wanted in wanted.items() if not is_wanted)])


def _is_path(name: str) -> bool:
    return os.sep in name or os.path.exists(name)


def _blank(name: str, error: OSError) -> Any:
    import spacy

    # "en_core_web_sm", "xx_ent_wiki_sm": the name of a model begins with its language.
    try:
        return spacy.blank(name.split("_")[0])
    except ImportError:
        raise error from None


def _not_installed(name: str, parse: bool, ner: bool) -> str:
    needs = " and ".join(need for need, asked in (("a parser", parse), ("an entity recogniser", ner)) if asked)
    return (
        f"The spaCy model '{name}' is not installed, and {needs} was requested, which a blank model lacks. "
        f"Remedy: `python -m spacy download {name}` (models are never downloaded automatically)."
    )
