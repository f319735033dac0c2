"""Several trained models of one task as one model."""

import copy
import math
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.meta import META_NAME, Meta
from allennlp.common.params import remove_keys_from_params
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.models.archival import CONFIG_NAME, Archive

from allennlp_today import load_archive
from elmo_tasks.files.atomic_files import atomic_folder
from elmo_tasks.files.json_files import write_json

__all__ = ["Ensemble", "write_ensemble"]

# The outputs of our models that an ensemble takes the mean of, and the fields with what is right.
_SCORES = ("logits", "start_log_probs", "end_log_probs")
_GOLD = ("tags", "label", "span_start", "span_end")


@Model.register("elmo_ensemble")
class Ensemble(Model):
    """
    Trained models of one task, with the same words and labels, such as those of trainings with
    different seeds. It chooses by the mean of their probabilities, or with a CRF by the mean of all
    scores. `write_ensemble` writes it; it cannot be trained.
    """

    def __init__(self, vocab: Vocabulary, members: list[Model], **kwargs: Any) -> None:
        super().__init__(vocab, **kwargs)
        self.members: Any = torch.nn.ModuleList(members)
        self.default_predictor = members[0].default_predictor

    def forward(self, **inputs: Any) -> dict[str, Any]:
        """The output of the first member, from the mean scores of all."""
        if self.training:
            raise ConfigurationError("an ensemble cannot be trained: train its members")
        gold = {name: inputs.pop(name) for name in _GOLD if name in inputs}
        outputs = [member.scores(**inputs) for member in self.members]
        first_member = self.members[0]
        mean_output = dict(outputs[0])
        for name in mean_output.keys() & set(_SCORES):
            # Shape: (n_members, batch_size, ..., n_choices)
            scores = torch.stack([output[name] for output in outputs])
            if hasattr(first_member, "crf"):
                mean_output[name] = scores.mean(0)
            else:
                log_sum = scores.log_softmax(-1).logsumexp(0)
                mean_output[name] = log_sum - math.log(len(outputs))
        decided: dict[str, Any] = first_member.decide(mean_output, **gold)
        return decided

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """As the first member."""
        readable: dict[str, Any] = self.members[0].make_output_human_readable(output_dict)
        return readable

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """As a member."""
        metrics: dict[str, float] = self.members[0].get_metrics(reset)
        return metrics


def write_ensemble(
    folder: str | PathLike[str],
    archives: Sequence[str | PathLike[str]],
    *,
    trusted: bool = False,
) -> None:
    """
    Writes a new folder with an `Ensemble` of archives, or of folders of runs. Everything that reads
    an archive reads it. `trusted`: see `TrainedTask`.
    """
    loaded = [load_archive(archive, trusted=trusted) for archive in archives]
    for path, archive in zip(archives, loaded, strict=True):
        _check_member(fspath(path), archive, loaded[0])
    members = []
    for archive in loaded:
        member = archive.config.get("model")
        # As AllenNLP does when it loads an archive.
        remove_keys_from_params(member)
        members.append(member.as_dict(quiet=True))
    config = copy.deepcopy(loaded[0].config.as_dict(quiet=True))
    config["model"] = {"type": "elmo_ensemble", "members": members}
    weights = _weights([archive.model for archive in loaded])
    with atomic_folder(folder) as temporary:
        write_json(temporary / CONFIG_NAME, config)
        Meta.new().to_file(str(temporary / META_NAME))
        loaded[0].model.vocab.save_to_files(str(temporary / "vocabulary"))
        torch.save(weights, temporary / "weights.th")


def _check_member(path: str, archive: Archive, first_archive: Archive) -> None:
    model = archive.model
    first_model = first_archive.model
    name = type(model).__name__
    if not hasattr(model, "decide"):
        expected = "a tagger, a classifier or a SquadModel"
        raise ConfigurationError(f"expected {expected}, got {name}: {path}")
    if type(model) is not type(first_model):
        raise ConfigurationError(f"expected a {type(first_model).__name__}, got {name}: {path}")
    for namespace in sorted(first_model.vocab.get_namespaces() | model.vocab.get_namespaces()):
        words = model.vocab.get_token_to_index_vocabulary(namespace)
        if words != first_model.vocab.get_token_to_index_vocabulary(namespace):
            message = f"expected the {namespace} of the first model, got different ones"
            raise ConfigurationError(f"{message}: {path}")
    reader = archive.config.params["dataset_reader"]
    if reader != first_archive.config.params["dataset_reader"]:
        message = "expected the dataset_reader of the first model, got a different one"
        raise ConfigurationError(f"{message}: {path}")


def _weights(models: Sequence[Model]) -> dict[str, torch.Tensor]:
    """The weights of the ensemble of these models."""
    states = [model.state_dict() for model in models]
    weights = {}
    for name, first_weight in states[0].items():
        member_weights = [state[name] for state in states]
        for number, weight in enumerate(member_weights):
            # A frozen biLM is written once.
            is_same = torch.equal(weight, first_weight)
            weights[f"members.{number}.{name}"] = first_weight if is_same else weight
        if name.startswith("crf."):
            # The first member decides for all.
            weights[f"members.0.{name}"] = torch.stack(member_weights).mean(0)
    return weights
