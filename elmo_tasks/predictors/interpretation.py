"""
How much each word of a text matters: AllenNLP Interpret, and the gradients with respect to the
embedded words.
"""

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import torch
from allennlp.common.util import JsonDict
from allennlp.data import Batch, Field, Instance
from allennlp.data.fields import LabelField, ListField, SequenceLabelField, TextField
from allennlp.interpret.saliency_interpreters import SaliencyInterpreter
from allennlp.models import Model
from allennlp.modules import TextFieldEmbedder
from allennlp.nn.util import move_to_device
from allennlp.predictors import Predictor

from elmo_tasks.predictors.task import Task, place_of, tokens_of

__all__ = ["EmbeddedWords", "InterpretablePredictor", "texts_of"]


class InterpretablePredictor(Task, Predictor):
    """
    The methods that AllenNLP's interpreters and attackers call. The model is embedded by words, not
    word pieces.
    """

    def explain(self, *texts: str, interpreter: str) -> Iterator[JsonDict]:
        """
        For `TrainedTask.explain`: what was found in the texts, each with the weights of the words.
        """
        # A copy that gets labeled instances from its interpreter, not a line.
        explainable: Any = copy.copy(self)
        explainable.json_to_labeled_instances = lambda labeled: labeled
        # Without this predictor's layer, which may have the hooks of a different thread.
        vars(explainable).pop("_embedded_words", None)
        interpret = SaliencyInterpreter.by_name(interpreter)(
            explainable
        ).saliency_interpret_from_json
        for instance in chain.from_iterable(self.instances_of(self.read(*texts).parts)):
            output = self.predict_instance(instance)
            found = self.result_type().parts(self.result([output], *texts))
            # An auxiliary has no roles.
            labeled = self.labeled_for_each(instance, output)[: len(found)]
            for each, weights in zip(found, interpret(labeled).values(), strict=True):
                yield {"found": each, "words": _weighted_words(instance, weights)}

    def labeled_for_each(self, instance: Instance, outputs: JsonDict) -> list[Instance]:
        """
        An instance for each thing that was found, with labels for which the loss depends on this
        thing.
        """
        return self.predictions_to_labeled_instances(instance, outputs)

    @cached_property
    def _embedded_words(self) -> "EmbeddedWords":
        return EmbeddedWords(self._model)

    def get_interpretable_layer(self) -> "EmbeddedWords":
        return self._embedded_words

    # Interpreters look for the positions of word pieces here.
    get_interpretable_text_field_embedder = get_interpretable_layer

    def get_gradients(self, instances: list[Instance]) -> tuple[dict[str, Any], dict[str, Any]]:
        """
        The gradients of the loss with respect to the embedded words; `grad_input_1` is for the last
        text.
        """
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        return self._embedded_words.gradients(instances, texts_of(instances[0]), self.cuda_device)

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: dict[str, Any]
    ) -> list[Instance]:
        """The instance with the predicted label or tags."""
        if "label" in outputs:
            return [self.labeled(instance, label=LabelField(outputs["label"]))]
        return [
            self.labeled(instance, tags=SequenceLabelField(outputs["tags"], instance["tokens"]))
        ]

    def labeled(self, instance: Instance, **fields: Field) -> Instance:
        """A copy of an instance with what was predicted, for the loss."""
        copied: Instance = instance.duplicate()
        for name, field in fields.items():
            copied.add_field(name, field, self._model.vocab)
        return copied


def _weighted_words(instance: Instance, weights: dict[str, list[float]]) -> list[JsonDict]:
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


def texts_of(instance: Instance) -> list[str]:
    """The names of the texts of an instance, in the order in which a model embeds them."""
    first = {
        name: field[0] if isinstance(field, ListField) else field
        for name, field in instance.fields.items()
    }
    return [name for name, field in first.items() if isinstance(field, TextField)]


def _embedder_of(model: Model) -> tuple[str, TextFieldEmbedder]:
    return next(
        (name, part) for name, part in model.named_children() if isinstance(part, TextFieldEmbedder)
    )


class EmbeddedWords(torch.nn.Module):
    """
    The layer that interpreters hook into. It is called with the embedded words of each text, of
    shape `(1, n_words, dim)`, which the hooks may change in place.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        # In a tuple, so it is not a part of this module.
        self._model = (model,)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return words

    def gradients(
        self, instances: list[Instance], texts: Sequence[str], device: int
    ) -> tuple[dict[str, Any], Any]:
        """
        The gradients of the loss of instances with labels, by name, and the model's output. The
        first is for the last of the `texts`, which are fields in the order in which the model
        embeds them: AllenNLP has the order of a backward pass. The model is not changed, so other
        threads may predict.
        """
        (original,) = self._model
        batch = Batch(instances)
        batch.index_instances(original.vocab)
        tensors = move_to_device(batch.as_tensor_dict(), device)
        # A copy that shares parts, weights and vocabulary, so its embedder can be replaced and its
        # metrics updated.
        shared = [original.vocab, *original.children(), *original.parameters(), *original.buffers()]
        model = copy.deepcopy(original, {id(each): each for each in shared})
        name, embedder = _embedder_of(model)
        watched = _Watched(
            embedder, self, [instance[text] for text in texts for instance in instances]
        )
        setattr(model, name, watched)
        # cuDNN has no gradients in evaluation mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            output = model(**tensors)
            gradients = torch.autograd.grad(output["loss"], watched.leaves)
        named = {
            f"grad_input_{number}": each.cpu().numpy()
            for number, each in enumerate(gradients[::-1], start=1)
        }
        detached = {
            key: value.detach() if isinstance(value, torch.Tensor) else value
            for key, value in output.items()
        }
        return named, {**model.make_output_human_readable(detached), "loss": detached["loss"]}


class _Watched(torch.nn.Module):
    """
    An embedder that passes the words of each text through a layer and keeps them in `leaves`, for
    gradients.
    """

    def __init__(
        self, embedder: TextFieldEmbedder, layer: EmbeddedWords, texts: Sequence[Any]
    ) -> None:
        super().__init__()
        self._embedder, self._layer, self._texts = embedder, layer, texts
        self.leaves: list[torch.Tensor] = []

    def forward(self, *inputs: Any, **options: Any) -> torch.Tensor:
        with torch.no_grad():
            output = self._embedder(*inputs, **options)
        # Shape: (n_rows * timesteps, dim)
        words = output.flatten(0, -2)
        # Shape: (n_rows, timesteps)
        rows = iter(torch.arange(len(words), device=words.device).view(-1, output.size(-2)))
        for text in self._texts:
            # Shape: (n_words,)
            numbers = torch.cat(list(_numbers(text, rows)))
            leaf = self._layer(words[numbers][None]).detach().requires_grad_()
            self.leaves.append(leaf)
            words = words.index_copy(0, numbers, leaf[0])
        return words.view_as(output)


def _numbers(text: Any, rows: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The positions of the words of a text, or of each sentence of a document."""
    for sentence in text if isinstance(text, ListField) else [text]:
        yield next(rows)[: len(sentence)]
