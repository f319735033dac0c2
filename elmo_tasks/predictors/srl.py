"""Semantic roles for sentences in JSON lines."""

from typing import Any, NamedTuple, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import SequenceLabelField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import place_of, span_in
from elmo_tasks.predictors.parts_of_speech import VerbFinder
from elmo_tasks.predictors.sentence import TaggingPredictor, pieces_of
from elmo_tasks.tags import tags_to_spans
from elmo_tasks.text import pieces

__all__ = ["SrlPredictor"]


class _Sentence(NamedTuple):
    tokens: list[Token]
    # The positions of the predicates; `None`: to be found.
    predicates: list[int] | None
    pieces: list[range]

    def piece_of(self, position: int) -> range:
        return next(piece for piece in self.pieces if position in piece)


@Predictor.register("elmo_srl")
class SrlPredictor(TaggingPredictor):
    """
    Takes lines like `{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}`, with the positions of the
    predicates, counted from 0, or `{"sentence": "Anna eats an apple."}`. `VerbFinder` finds predicates that are not
    given. A prediction has AllenNLP's form, `{"words": [...], "verbs": [{"verb": "eats", "description": "[ARG0: Anna]
    [V: eats] ...", "tags": [...]}]}`, plus `spans` with the positions of the arguments. With `--use-dataset-reader`,
    there is one line per predicate.

    The plain result is a list of predicates, each with `verb`, its `start` and `end`, and `roles`; a role has `text`,
    `start`, `end` and `label`. Verbs without roles are left out.

    # Parameters

    spacy_model : `str`, optional
        See `VerbFinder`.
    kwargs
        See `JsonLinesPredictor`.
    """

    title = "Semantic roles"
    examples = (
        ("The committee rejected the plan because it would cost too much.",),
        ("She gave the children a book and they read it in the garden.",),
        ("If the tenant does not pay the rent, the landlord may end the contract.",),
    )
    shown_as = "roles"
    example = '{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}'

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, spacy_model: Optional[str] = None, **kwargs: Any
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._find_verbs = VerbFinder(spacy_model)

    def parse(self, inputs: JsonDict) -> Any:
        tokens, predicates = self.tokens(inputs), inputs.get("predicates")
        # -1 would be the last word.
        if not all(predicate in range(len(tokens)) for predicate in predicates or ()):
            raise ValueError(f"expected predicates from 0 to {len(tokens) - 1}, got {predicates}")
        positions = None if predicates is None else list(map(int, predicates))
        return _Sentence(tokens, positions, pieces([token.text for token in tokens]))

    def instances_of(self, parsed: list[Any]) -> list[list[Instance]]:
        unknown = [sentence for sentence in parsed if sentence.predicates is None]
        found = iter(self._find_verbs([[token.text for token in sentence.tokens] for sentence in unknown]))
        of_sentences = [next(found) if sentence.predicates is None else sentence.predicates for sentence in parsed]
        return [
            [self._instance(sentence, position) for position in positions]
            for sentence, positions in zip(parsed, of_sentences, strict=True)
        ]

    def _instance(self, sentence: _Sentence, predicate: int) -> Instance:
        piece = sentence.piece_of(predicate)
        tokens = [Token(token.text, token.idx, token.idx_end) for token in sentence.tokens[piece.start : piece.stop]]
        tokens[predicate - piece.start].tag_ = "V"
        instance = self._dataset_reader.text_to_instance(tokens, _indicator(tokens))
        if piece.start:
            instance["metadata"].metadata["first"] = piece.start
        return instance

    def get_gradients(self, instances: list[Instance]) -> tuple[dict[str, Any], dict[str, Any]]:
        for instance in (each for each in instances if any(_indicator(each["tokens"].tokens))):
            # AllenNLP's input reduction removes words from the text, but not from other fields.
            indicator = SequenceLabelField(_indicator(instance["tokens"].tokens), instance["tokens"])
            instance.add_field("verb_indicator", indicator)
        return super().get_gradients(instances)

    def predictions_to_labeled_instances(self, instance: Instance, outputs: dict[str, Any]) -> list[Instance]:
        return [self.labeled(instance, tags=SequenceLabelField(outputs["tags"], instance["tokens"]))]

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens = instance["tokens"].tokens
        output["spans"] = [
            {"label": label, "start": start, "end": end, **place_of(tokens, start, end)}
            for label, start, end in tags_to_spans(output["tags"])
        ]
        metadata = instance["metadata"].metadata
        # The first word of the piece, for `joined`; the place of the verb, if the words come from a text.
        first = {"first": metadata["first"]} if "first" in metadata else {}
        return output | first | place_of(tokens, metadata["verb_index"], metadata["verb_index"])

    def joined(self, parsed: Any, outputs: list[JsonDict]) -> JsonDict:
        words = [token.text for token in parsed.tokens]
        whole: JsonDict = {"words": words, "verbs": [_in_sentence(output, words) for output in outputs]}
        return whole | (
            {"pieces": pieces_of([piece.stop for piece in parsed.pieces])} if len(parsed.pieces) > 1 else {}
        )

    def plain(self, predictions: list[JsonDict], *texts: str) -> Any:
        verbs = [verb for prediction in predictions for verb in prediction["verbs"]]
        # An auxiliary has no roles but itself.
        return [_predicate(texts[0], verb) for verb in verbs if len(verb["spans"]) > 1]


def _indicator(tokens: list[Token]) -> list[int]:
    return [int(token.tag_ == "V") for token in tokens]


def _in_sentence(verb: JsonDict, words: list[str]) -> JsonDict:
    """The roles of a verb in the whole sentence, from those in a piece of it."""
    first, n_words = verb.get("first", 0), len(verb["words"])
    before, after = words[:first], words[first + n_words :]
    spans = [span | {"start": span["start"] + first, "end": span["end"] + first} for span in verb["spans"]]
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
    return {"verb": verb["verb"], "start": verb["start_char"], "end": verb["end_char"], "roles": roles}
