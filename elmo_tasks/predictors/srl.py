"""Semantic roles for sentences in JSON lines."""

from collections.abc import Sequence
from typing import Any, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.json_lines_predictor import places
from elmo_tasks.predictors.parts_of_speech import VerbFinder
from elmo_tasks.predictors.sentence import SentencePredictor
from elmo_tasks.tags import tags_to_spans

__all__ = ["SrlPredictor"]


@Predictor.register("elmo_srl")
class SrlPredictor(SentencePredictor):
    """
    Takes lines like `{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}`, with the positions of the
    predicates, counted from 0, or `{"sentence": "Anna eats an apple."}`. `VerbFinder` finds predicates that are not
    given. A prediction has AllenNLP's form, `{"words": [...], "verbs": [{"verb": "eats", "description": "[ARG0: Anna]
    [V: eats] ...", "tags": [...]}]}`, plus `spans` with the positions of the arguments. With `--use-dataset-reader`,
    there is one line per predicate.

    # Parameters

    spacy_model : `str`, optional
        See `VerbFinder`.
    kwargs
        See `JsonLinesPredictor`.
    """

    example = '{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}'

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, spacy_model: Optional[str] = None, **kwargs: Any
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._find_verbs = VerbFinder(spacy_model)

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        outcomes = [self.read(line) for line in ([inputs] if isinstance(inputs, str) else inputs)]
        sentences = [outcome for outcome in outcomes if "error" not in outcome]
        self._add_predicates(sentences)
        instances = [self._instance(sentence, i) for sentence in sentences for i in sentence["predicates"]]
        predictions = iter(self.predict_batch_instance(instances))
        for sentence in sentences:
            verbs = [next(predictions) for _ in sentence.pop("predicates")]
            sentence["words"] = [token.text for token in sentence.pop("tokens")]
            sentence["verbs"] = [{key: verb[key] for key in verb if key != "words"} for verb in verbs]
        return outcomes

    def outcome_of(self, inputs: JsonDict) -> JsonDict:
        """The `tokens` of a line, and its `predicates` if they are given."""
        tokens, predicates = self.tokens(inputs), inputs.get("predicates")
        # -1 would be the last word.
        if not all(0 <= predicate < len(tokens) for predicate in predicates or ()):
            raise ValueError(f"expected predicates from 0 to {len(tokens) - 1}, got {predicates}")
        return {"tokens": tokens, "predicates": predicates}

    def _add_predicates(self, sentences: list[JsonDict]) -> None:
        unknown = [sentence for sentence in sentences if sentence["predicates"] is None]
        found = self._find_verbs([[token.text for token in sentence["tokens"]] for sentence in unknown])
        for sentence, predicates in zip(unknown, found, strict=True):
            sentence["predicates"] = predicates

    def _instance(self, sentence: JsonDict, predicate: int) -> Instance:
        tokens = [Token(token.text, token.idx, token.idx_end) for token in sentence["tokens"]]
        tokens[predicate].tag_ = "V"
        return self._dataset_reader.text_to_instance(tokens, _indicator(tokens))

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens = instance["tokens"].tokens
        output["spans"] = [
            {"label": label, "start": start, "end": end, **places(tokens, start, end)}
            for label, start, end in tags_to_spans(output["tags"])
        ]
        return output


def _indicator(tokens: Sequence[Token]) -> list[int]:
    return [int(token.tag_ == "V") for token in tokens]
