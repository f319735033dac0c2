"""The predictor for semantic roles."""

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Optional

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import SequenceLabelField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.predictors.pos_tagger import PosTagger, TagSentences, spacy_tagger
from elmo_tasks.predictors.results import Roles
from elmo_tasks.predictors.sentence_predictor import TaggingPredictor, pieces_of
from elmo_tasks.predictors.task_predictor import TaskInput, TextPart
from elmo_tasks.predictors.tokens import offsets_of, span_in
from elmo_tasks.text import pieces
from elmo_tasks.text.tags import tags_to_spans

__all__ = ["SrlPredictor"]

_VERBS = ("VERB", "AUX")


class _Sentence(NamedTuple):
    """The part of a text that becomes an instance per predicate."""

    tokens: list[Token]
    predicates: list[int] | None
    """The positions of the predicates; `None`: the tagger finds them."""
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
    form, plus `spans` with the positions of the arguments:

        {"words": [...], "verbs": [
            {"verb": "eats", "description": "[ARG0: Anna] [V: eats] ...", "tags": [...]}
        ]}

    With `--use-dataset-reader`, there is one line per predicate.

    # Parameters

    spacy_model : `str`, optional
        A spaCy model with a tagger that finds the verbs, for other languages: an installed package
        or a folder. `None`: `PosTagger`, for English.
    """

    title = "Semantic roles"
    about = (
        "Who did what to whom: a list of predicates (`verb`, `start`, `end`) with `roles` (`text`, "
        "`start`, `end`, `label`). Verbs without roles are left out."
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
    def _tagger(self) -> TagSentences:
        """Loaded only if a line has no predicates."""
        if self._spacy_model is not None:
            return spacy_tagger(self._spacy_model)
        device = next(self._model.parameters()).device
        return PosTagger(device, self._precision)

    def part(self, tokens: list[Token]) -> TextPart:
        return _Sentence(tokens, None, pieces([token.text for token in tokens]))

    def read_line(self, line: JsonDict) -> TaskInput:
        (sentence,) = super().read_line(line).parts
        predicates = line.get("predicates")
        if predicates is not None:
            n_words = len(sentence.tokens)
            # -1 would be the last word.
            if not all(predicate in range(n_words) for predicate in predicates):
                raise ValueError(f"expected predicates from 0 to {n_words - 1}, got {predicates}")
            positions = [int(predicate) for predicate in predicates]
            sentence = sentence._replace(predicates=positions)
        return TaskInput((), [sentence])

    def instances_of(self, parts: list[TextPart]) -> list[list[Instance]]:
        instances = []
        for sentence, positions in zip(parts, self._predicates_of(parts), strict=True):
            instances.append([self._instance(sentence, position) for position in positions])
        return instances

    def _predicates_of(self, sentences: list[_Sentence]) -> Iterator[list[int]]:
        """The positions of the predicates of each sentence; one pass of the tagger finds all."""
        untagged = []
        for sentence in sentences:
            if sentence.predicates is None:
                untagged += sentence.words_of_pieces()
        tags: list[str] = []
        if any(untagged):
            for piece_tags in self._tagger(untagged):
                tags += piece_tags
        remaining_tags = iter(tags)
        for sentence in sentences:
            if sentence.predicates is not None:
                yield sentence.predicates
                continue
            sentence_tags = islice(remaining_tags, len(sentence.tokens))
            yield [position for position, tag in enumerate(sentence_tags) if tag in _VERBS]

    def _instance(self, sentence: _Sentence, predicate: int) -> Instance:
        piece = next(piece for piece in sentence.pieces if predicate in piece)
        tokens = []
        for token in sentence.tokens[piece.start : piece.stop]:
            # A copy, which has the tag of this predicate.
            tokens.append(Token(token.text, token.idx, token.idx_end))
        tokens[predicate - piece.start].tag_ = "V"
        instance = self._dataset_reader.text_to_instance(tokens, _indicator(tokens))
        if piece.start:
            instance["metadata"].metadata["start_of_piece"] = piece.start
        return instance

    def get_gradients(self, instances: list[Instance]) -> tuple[dict[str, Any], dict[str, Any]]:
        for instance in instances:
            indicator = _indicator(instance["tokens"].tokens)
            if any(indicator):
                # AllenNLP's input reduction removes words from the text, but not from other fields.
                field = SequenceLabelField(indicator, instance["tokens"])
                instance.add_field("verb_indicator", field)
        return super().get_gradients(instances)

    def finish(self, instance: Instance, output: JsonDict) -> JsonDict:
        """
        Adds the roles as `spans`; the offsets of the verb, if the words come from a text; and for
        `prediction`, the `start_of_piece`, unless it is the start of the sentence.
        """
        output["spans"] = []
        for label, first, last in tags_to_spans(output["tags"]):
            output["spans"].append({"label": label, "start": first, "end": last})
        output = super().finish(instance, output)
        metadata = instance["metadata"].metadata
        if "start_of_piece" in metadata:
            output["start_of_piece"] = metadata["start_of_piece"]
        verb_index = metadata["verb_index"]
        return output | offsets_of(instance["tokens"].tokens, verb_index, verb_index)

    def prediction(self, part: TextPart, outputs: list[JsonDict]) -> JsonDict:
        words = [token.text for token in part.tokens]
        verbs = [_in_sentence(output, words) for output in outputs]
        return {"words": words, "verbs": verbs, **pieces_of(part.pieces)}

    def result(self, outputs: list[JsonDict], *texts: str) -> Any:
        (text,) = texts
        verbs = []
        for verb in outputs:
            # An auxiliary has no roles but itself.
            if len(verb.get("spans", ())) > 1:
                verbs.append(_verb_with_roles(text, verb))
        return verbs


def _indicator(tokens: list[Token]) -> list[int]:
    return [int(token.tag_ == "V") for token in tokens]


def _in_sentence(verb: JsonDict, words: list[str]) -> JsonDict:
    """The roles of a verb in the whole sentence, from those in a piece of it."""
    start = verb.get("start_of_piece", 0)
    before = words[:start]
    after = words[start + len(verb["words"]) :]
    spans = []
    for span in verb["spans"]:
        spans.append({**span, "start": span["start"] + start, "end": span["end"] + start})
    verb_in_sentence = {
        "verb": verb["verb"],
        # Words outside the piece were not looked at.
        "tags": ["O"] * len(before) + verb["tags"] + ["O"] * len(after),
        "probabilities": [None] * len(before) + verb["probabilities"] + [None] * len(after),
        "description": " ".join([*before, verb["description"], *after]),
        "spans": spans,
    }
    for key in ("start_char", "end_char"):
        if key in verb:
            verb_in_sentence[key] = verb[key]
    return verb_in_sentence


def _verb_with_roles(text: str, verb: JsonDict) -> JsonDict:
    roles = [{**span_in(text, span), "label": span["label"]} for span in verb["spans"]]
    return {
        "verb": verb["verb"],
        "start": verb["start_char"],
        "end": verb["end_char"],
        "roles": roles,
    }
