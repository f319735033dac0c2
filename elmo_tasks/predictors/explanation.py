"""How much each word of a text matters for what a task finds in it: AllenNLP Interpret, for texts and plain results."""

import copy
from collections.abc import Iterator
from typing import Any

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.data.fields import SequenceLabelField
from allennlp.interpret.saliency_interpreters import SaliencyInterpreter

from elmo_tasks.predictors.interpretation import texts_of
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor
from elmo_tasks.predictors.task import place_of, tokens_of
from elmo_tasks.tags import spans_to_bioul, tags_to_spans

__all__ = ["explained"]


def explained(predictor: JsonLinesPredictor, texts: tuple[str, ...], interpreter: str) -> Iterator[JsonDict]:
    """For `TrainedTask.explain`: what was found in the texts, each with the weights of the words."""
    # A copy that gets labeled instances from its interpreter, not a line.
    explainable: Any = copy.copy(predictor)
    explainable.json_to_labeled_instances = lambda labeled: labeled
    # Without the predictor's layer, which may have the hooks of a different thread.
    vars(explainable).pop("_embedded_words", None)
    interpret = SaliencyInterpreter.by_name(interpreter)(explainable).saliency_interpret_from_json
    for line in predictor.lines(*texts):
        for instance in predictor.instances_of([predictor.parse(line)])[0]:
            output = predictor.predict_instance(instance)
            result = predictor.plain([output], *texts)
            if "clusters" in output:
                found, labeled = result["chains"], _without_each_chain(predictor, instance, output)
            elif "spans" in output and predictor.shown_as == "spans":
                found, labeled = result, _without_each_name(predictor, instance, output)
            else:
                found = result if predictor.shown_as == "roles" else [result]
                # An auxiliary has no roles.
                labeled = predictor.predictions_to_labeled_instances(instance, output)[: len(found)]
            for each, weights in zip(found, interpret(labeled).values(), strict=True):
                yield {"found": each, "words": _words(instance, weights)}


# With all labels as predicted except one name or chain, the loss is close to the log odds of this one. With only the
# one, as AllenNLP labels instances for `InputReduction`, most of the loss is about the others.


def _without_each_name(predictor: JsonLinesPredictor, instance: Instance, output: JsonDict) -> list[Instance]:
    spans = tags_to_spans(output["tags"])
    rows = [spans_to_bioul([each for each in spans if each != span], len(output["tags"])) for span in spans]
    return [predictor.labeled(instance, tags=SequenceLabelField(row, instance["tokens"])) for row in rows]


def _without_each_chain(predictor: JsonLinesPredictor, instance: Instance, output: JsonDict) -> list[Instance]:
    clusters = [[tuple(mention) for mention in each] for each in output["clusters"]]
    instances = []
    for cluster in clusters:
        copied = predictor.labeled(instance)
        copied["metadata"].metadata["clusters"] = [each for each in clusters if each != cluster]
        instances.append(copied)
    return instances


def _words(instance: Instance, weights: dict[str, list[float]]) -> list[JsonDict]:
    """The words of all texts of an instance. Of several, `grad_input_1` is the last."""
    names = texts_of(instance)
    words = []
    for number, name in enumerate(names):
        tokens = tokens_of(instance[name])
        of_text = {"input": name} if len(names) > 1 else {}
        for position, weight in enumerate(weights[f"grad_input_{len(names) - number}"]):
            place = place_of(tokens, position, position)
            offsets = {"start": place["start_char"], "end": place["end_char"]} if place else {}
            words.append({**of_text, "text": tokens[position].text, **offsets, "weight": weight})
    return words
