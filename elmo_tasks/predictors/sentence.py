"""The predictor for all models of single sentences."""

from functools import cached_property

from allennlp.common.util import JsonDict
from allennlp.data import Instance, Token
from allennlp.predictors import Predictor

from elmo_tasks.data import SpacyBlankTokenizer
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, places
from elmo_tasks.text import as_words

__all__ = ["SentencePredictor"]


@Predictor.register("elmo_sentence")
class SentencePredictor(JsonLinesPredictor):
    """
    Takes lines like `{"sentence": "Jordan beat Chelsea ."}`, which it tokenizes with spaCy's rules, or
    `{"words": ["Jordan", "beat", "Chelsea", "."]}`, for named entities, sentiment and parts of speech. Spans of a
    `sentence` have `start_char` and `end_char`.
    """

    example = '{"sentence": "Jordan beat Chelsea ."}'

    def predict(self, sentence: str) -> JsonDict:
        return self.predict_json({"sentence": sentence})

    def predict_tokenized(self, tokenized_sentence: list[str]) -> JsonDict:
        return self.predict_json({"words": tokenized_sentence})

    @cached_property
    def _tokenizer(self) -> SpacyBlankTokenizer:
        return SpacyBlankTokenizer(self._language)

    def tokens(self, inputs: JsonDict) -> list[Token]:
        """The words of a line."""
        if "sentence" in inputs:
            return self._tokenizer.tokenize(inputs["sentence"])
        return [Token(word) for word in as_words(inputs["words"])]

    def outcome_of(self, inputs: JsonDict) -> Instance | JsonDict:
        tokens = self.tokens(inputs)
        return self._dataset_reader.text_to_instance(tokens) if tokens else dict(self._model.without_words)

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        for span in output.get("spans", ()):
            span |= places(instance["tokens"].tokens, span["start"], span["end"])
        return output
