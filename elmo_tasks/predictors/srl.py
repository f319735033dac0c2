"""Semantic roles for sentences in JSON lines."""

from collections.abc import Callable
from functools import cached_property
from itertools import chain, islice
from typing import Any, ClassVar, NamedTuple, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import SequenceLabelField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.parts_of_speech import PosTagger, spacy_tagger
from elmo_tasks.predictors.results import Roles
from elmo_tasks.predictors.sentence import TaggingPredictor, pieces_of
from elmo_tasks.predictors.task import Input, place_of, span_in
from elmo_tasks.text import pieces
from elmo_tasks.text.tags import tags_to_spans

__all__ = ["SrlPredictor"]

_VERBS = ("VERB", "AUX")


class _Sentence(NamedTuple):
    tokens: list[Token]
    # The positions of the predicates; `None`: to be found.
    predicates: list[int] | None
    pieces: list[range]

    def words_of_pieces(self) -> list[list[str]]:
        words = [token.text for token in self.tokens]
        return [words[piece.start : piece.stop] for piece in self.pieces]


@Predictor.register("elmo_srl")
class SrlPredictor(TaggingPredictor):
    """
    Takes lines like `{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}`, with the
    positions of the predicates, counted from 0, or `{"sentence": "Anna eats an apple."}`. Without
    `predicates`, they are all verbs and auxiliaries, as in AllenNLP. A prediction has AllenNLP's
    form,
    `{"words": [...], "verbs": [{"verb": "eats", "description": "[ARG0: Anna] [V: eats] ...", "tags": [...]}]}`,
    plus `spans` with the positions of the arguments. With `--use-dataset-reader`, there is one line
    per predicate.

    # Parameters

    spacy_model : `str`, optional
        A spaCy model with a tagger that finds the verbs, for other languages: an installed package
        or a folder. `None`: `PosTagger`, for English.
    """

    title = "Semantic roles"
    about = (
        "Who did what to whom: a list of predicates (`verb`, `start`, `end`) with `roles` (`text`, `start`, `end`, "
        "`label`). Verbs without roles are left out."
    )
    examples = (
        ("The committee rejected the plan because it would cost too much.",),
        ("She gave the children a book and they read it in the garden.",),
        ("If the tenant does not pay the rent, the landlord may end the contract.",),
    )
    result_type = Roles
    without_words: ClassVar[JsonDict] = {"words": [], "verbs": []}

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        spacy_model: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._spacy_model = spacy_model

    @cached_property
    def _tagger(self) -> Callable[[list[list[str]]], list[list[str]]]:
        """Loaded only if a line has no predicates."""
        device = next(self._model.parameters()).device
        return (
            PosTagger(device, self._precision)
            if self._spacy_model is None
            else spacy_tagger(self._spacy_model)
        )

    def part(self, tokens: list[Token]) -> Any:
        return _Sentence(tokens, None, pieces([token.text for token in tokens]))

    def read_line(self, line: JsonDict) -> Input:
        (sentence,) = super().read_line(line).parts
        if (predicates := line.get("predicates")) is not None:
            # -1 would be the last word.
            if not all(predicate in range(len(sentence.tokens)) for predicate in predicates):
                raise ValueError(
                    f"expected predicates from 0 to {len(sentence.tokens) - 1}, got {predicates}"
                )
            sentence = sentence._replace(predicates=list(map(int, predicates)))
        return Input((), [sentence])

    def instances_of(self, parts: list[Any]) -> list[list[Instance]]:
        texts = (sentence.words_of_pieces() for sentence in parts if sentence.predicates is None)
        unknown = list(chain.from_iterable(texts))
        tags = chain.from_iterable(self._tagger(unknown) if any(unknown) else unknown)
        instances = []
        for sentence in parts:
            positions = sentence.predicates
            if positions is None:
                of_words = islice(tags, len(sentence.tokens))
                positions = [position for position, tag in enumerate(of_words) if tag in _VERBS]
            instances.append([self._instance(sentence, position) for position in positions])
        return instances

    def _instance(self, sentence: _Sentence, predicate: int) -> Instance:
        piece = next(piece for piece in sentence.pieces if predicate in piece)
        tokens = [
            Token(token.text, token.idx, token.idx_end)
            for token in sentence.tokens[piece.start : piece.stop]
        ]
        tokens[predicate - piece.start].tag_ = "V"
        instance = self._dataset_reader.text_to_instance(tokens, _indicator(tokens))
        if piece.start:
            instance["metadata"].metadata["first"] = piece.start
        return instance

    def get_gradients(self, instances: list[Instance]) -> tuple[dict[str, Any], dict[str, Any]]:
        for instance in (each for each in instances if any(_indicator(each["tokens"].tokens))):
            # AllenNLP's input reduction removes words from the text, but not from other fields.
            indicator = SequenceLabelField(
                _indicator(instance["tokens"].tokens), instance["tokens"]
            )
            instance.add_field("verb_indicator", indicator)
        return super().get_gradients(instances)

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens, metadata = instance["tokens"].tokens, instance["metadata"].metadata
        found = tags_to_spans(output["tags"])
        output["spans"] = [
            {"label": label, "start": start, "end": end} for label, start, end in found
        ]
        # The first word of the piece, for `prediction`; the place of the verb, if the words come
        # from a text.
        first = {"first": metadata["first"]} if "first" in metadata else {}
        verb = place_of(tokens, metadata["verb_index"], metadata["verb_index"])
        return super().finish(instance, output) | first | verb

    def prediction(self, part: Any, outputs: list[JsonDict]) -> JsonDict:
        words = [token.text for token in part.tokens]
        whole: JsonDict = {
            "words": words,
            "verbs": [_in_sentence(output, words) for output in outputs],
        }
        return whole | pieces_of(part.pieces)

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        # An auxiliary has no roles but itself.
        return [_predicate(texts[0], verb) for verb in outputs if len(verb.get("spans", ())) > 1]


def _indicator(tokens: list[Token]) -> list[int]:
    return [int(token.tag_ == "V") for token in tokens]


def _in_sentence(verb: JsonDict, words: list[str]) -> JsonDict:
    """The roles of a verb in the whole sentence, from those in a piece of it."""
    first, n_words = verb.get("first", 0), len(verb["words"])
    before, after = words[:first], words[first + n_words :]
    spans = [
        span | {"start": span["start"] + first, "end": span["end"] + first}
        for span in verb["spans"]
    ]
    return {
        "verb": verb["verb"],
        # Words outside the piece were not looked at.
        "tags": ["O"] * len(before) + verb["tags"] + ["O"] * len(after),
        "probabilities": [None] * len(before) + verb["probabilities"] + [None] * len(after),
        "description": " ".join([*before, verb["description"], *after]),
        "spans": spans,
        **{key: verb[key] for key in ("start_char", "end_char") if key in verb},
    }


def _predicate(text: str, verb: JsonDict) -> JsonDict:
    roles = [{**span_in(text, span), "label": span["label"]} for span in verb["spans"]]
    return {
        "verb": verb["verb"],
        "start": verb["start_char"],
        "end": verb["end_char"],
        "roles": roles,
    }
