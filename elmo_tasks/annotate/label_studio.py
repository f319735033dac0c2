"""A text and what tasks have found in it, as Label Studio imports it for correction."""

from itertools import chain, pairwise
from typing import Any

from elmo_tasks.kinds import Standoff

__all__ = ["label_studio_task"]

# The names in Label Studio's template for named entities: `<Labels name="label" toName="text">`, and `$text`.
_NAMES = {"from_name": "label", "to_name": "text"}


def label_studio_task(data: dict[str, Any], results: dict[str, Standoff]) -> dict[str, Any]:
    """
    A task with a prediction of each model by its name. `data` has the `text`. The score of a prediction, by which Label
    Studio sorts, is the lowest probability in it.
    """
    return {"data": data, "predictions": [_prediction(data["text"], *result) for result in results.items()]}


def _prediction(text: str, model: str, found: Standoff) -> dict[str, Any]:
    names = [f"{model}-{number}" for number in range(len(found.marks))]
    marks = zip(names, found.marks, strict=True)
    regions = [_region(text, name, label, place) for name, (label, place) in marks]
    # A chain links each mention to the one before it.
    chains = (("coreference", *pair) for pair in chain.from_iterable(map(pairwise, found.chains)))
    relations = [
        {"type": "relation", "from_id": names[head], "to_id": names[tail], "direction": "right", "labels": [label]}
        for label, head, tail in chain(found.links, chains)
    ]
    scores = [region["score"] for region in regions if "score" in region]
    score = {"score": min(scores)} if scores else {}
    return {"model_version": model, **score, "result": regions + relations}


def _region(text: str, name: str, label: str, place: dict[str, Any]) -> dict[str, Any]:
    start, end = place["start"], place["end"]
    score = {"score": place["probability"]} if "probability" in place else {}
    value = {"start": start, "end": end, "text": text[start:end], "labels": [label]}
    return {"id": name, **_NAMES, "type": "labels", **score, "value": value}
