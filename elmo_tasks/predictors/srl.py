"""Semantic roles of sentences in JSON lines."""

from collections.abc import Sequence
from typing import Any, ClassVar, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import SequenceLabelField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, places
from elmo_tasks.predictors.sentence import list_of
from elmo_tasks.predictors.verbs import VerbFinder
from elmo_tasks.tags import tags_to_spans

__all__ = ["SrlPredictor"]


@Predictor.register("elmo_srl")
class SrlPredictor(JsonLinesPredictor):
    """
    Takes lines like `{"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}`, with the numbers of the
    predicates, counted from 0, or `{"sentence": "Anna eats an apple."}`. Verbs that are not given are found by
    `VerbFinder`. A prediction has the form of AllenNLP's, `{"words": [...], "verbs": [{"verb": "eats",
    "description": "[ARG0: Anna] [V: eats] ...", "tags": [...]}]}`, and `spans` with the places of the arguments. With
    `--use-dataset-reader` it is one line for each predicate.

    # Parameters

    language : `str`
        spaCy's code of the language of the tokenization rules.
    spacy_model : `str`, optional
        See `VerbFinder`.
    kwargs
        See `JsonLinesPredictor`.
    """

    example: ClassVar[JsonDict] = {"words": ["Anna", "eats", "an", "apple"], "predicates": [1]}
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"sentence": (), "words": ("predicates",)}

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        language: str = "en",
        spacy_model: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._tokenizer = SpacyBlankTokenizer(language)
        self._find_verbs = VerbFinder(spacy_model)

    def predict(self, sentence: str) -> JsonDict:
        return self.predict_json({"sentence": sentence})

    def predict_tokenized(self, tokenized_sentence: list[str]) -> JsonDict:
        return self.predict_json({"words": tokenized_sentence})

    def predict_batch_json(self, inputs: list[JsonDict]) -> list[JsonDict]:
        outcomes = [self._outcome(line) for line in inputs]
        sentences = [outcome for outcome in outcomes if "error" not in outcome]
        unknown = [sentence for sentence in sentences if sentence["predicates"] is None]
        found = self._find_verbs([[token.text for token in sentence["tokens"]] for sentence in unknown])
        for sentence, predicates in zip(unknown, found, strict=True):
            sentence["predicates"] = predicates
        instances = [
            self._instance(sentence["tokens"], predicate)
            for sentence in sentences
            for predicate in sentence["predicates"]
        ]
        predictions = iter(self.predict_batch_instance(instances))
        for sentence in sentences:
            verbs = [next(predictions) for _ in sentence.pop("predicates")]
            sentence["words"] = [token.text for token in sentence.pop("tokens")]
            sentence["verbs"] = [{key: verb[key] for key in verb if key != "words"} for verb in verbs]
        return outcomes

    def outcome_of(self, inputs: JsonDict) -> JsonDict:
        """The `tokens` and the `predicates` of a line."""
        if "sentence" in inputs:
            return {"tokens": self._tokenizer.tokenize(inputs["sentence"]), "predicates": None}
        tokens, predicates = [Token(word) for word in list_of(inputs["words"])], inputs.get("predicates")
        for predicate in predicates or ():
            # -1 would be the last word.
            if not 0 <= predicate < len(tokens):
                raise ValueError(f"expected predicates from 0 to {len(tokens) - 1}, got {predicate}")
        return {"tokens": tokens, "predicates": predicates}

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        return self._batch_json_to_instances([json_dict])[0]

    def _batch_json_to_instances(self, json_dicts: list[JsonDict]) -> list[Instance]:
        """The first predicate of each sentence, as AllenNLP's interpreters take one."""
        sentences = [self.read(json_dict) for json_dict in json_dicts]
        found = self._find_verbs([[token.text for token in sentence["tokens"]] for sentence in sentences])
        predicates = [sentence["predicates"] or verbs for sentence, verbs in zip(sentences, found, strict=True)]
        return [self._instance(sentence["tokens"], of[0]) for sentence, of in zip(sentences, predicates, strict=True)]

    def _instance(self, tokens: Sequence[Token], predicate: int) -> Instance:
        marked = [Token(token.text, token.idx, token.idx_end) for token in tokens]
        marked[predicate].tag_ = "V"
        return self._dataset_reader.text_to_instance(marked, _indicator(marked))

    def get_gradients(self, instances: list[Instance]) -> tuple[dict[str, Any], dict[str, Any]]:
        for instance in (each for each in instances if any(_indicator(each["tokens"].tokens))):
            # AllenNLP's input reduction has removed words from the text, but not from other fields.
            indicator = SequenceLabelField(_indicator(instance["tokens"].tokens), instance["tokens"])
            instance.add_field("verb_indicator", indicator)
        return super().get_gradients(instances)

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        tokens = instance["tokens"].tokens
        output["spans"] = [
            {"label": label, "start": start, "end": end, **places(tokens, start, end)}
            for label, start, end in tags_to_spans(output["tags"])
        ]
        return output

    def predictions_to_labeled_instances(self, instance: Instance, outputs: dict[str, Any]) -> list[Instance]:
        return [self.labeled(instance, tags=SequenceLabelField(outputs["tags"], instance["tokens"]))]


def _indicator(tokens: Sequence[Token]) -> list[int]:
    return [int(token.tag_ == "V") for token in tokens]
