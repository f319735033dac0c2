"""
How much each word of a text matters: AllenNLP Interpret, and the gradients with respect to the
embedded words.
"""

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NotRequired, TypedDict

import torch
from allennlp.common.util import JsonDict
from allennlp.data import Batch, Field, Instance
from allennlp.data.fields import LabelField, ListField, SequenceLabelField, TextField
from allennlp.interpret.saliency_interpreters import SaliencyInterpreter
from allennlp.models import Model
from allennlp.modules import TextFieldEmbedder
from allennlp.nn.util import move_to_device
from allennlp.predictors import Predictor

from elmo_tasks.predictors.task_predictor import TaskPredictor
from elmo_tasks.predictors.tokens import offsets_of, tokens_of

__all__ = [
    "EmbeddedWords",
    "Explanation",
    "InterpretablePredictor",
    "WeightedWord",
    "names_of_texts",
]


class WeightedWord(TypedDict):
    """A word with its weight for a part of a result."""

    input: NotRequired[str]
    """The name of its text, if there are several."""
    text: str
    start: NotRequired[int]
    end: NotRequired[int]
    weight: float


class Explanation(TypedDict):
    """A name, a predicate, a chain, or else a whole result, and the weights of all words for it."""

    found: Any
    words: list[WeightedWord]


class InterpretablePredictor(TaskPredictor, Predictor):
    """
    The methods that AllenNLP's interpreters and attackers call. The model is embedded by words, not
    word pieces.
    """

    def explain(self, *texts: str, interpreter: str) -> Iterator[Explanation]:
        """
        For `TrainedTask.explain`: each thing that the model finds in the texts, with the weights of
        the words.
        """
        # A copy that gets labeled instances from its interpreter, not a line.
        explainable: Any = copy.copy(self)
        explainable.json_to_labeled_instances = lambda labeled: labeled
        # Without this predictor's layer, which may have the hooks of a different thread.
        vars(explainable).pop("_embedded_words", None)
        saliency: Any = SaliencyInterpreter.by_name(interpreter)(explainable)
        instances_of_parts = self.instances_of(self.read(*texts).parts)
        for instance in chain.from_iterable(instances_of_parts):
            output = self.predict_instance(instance)
            results = self.result_type().parts(self.result([output], *texts))
            # An auxiliary has no roles.
            labeled = self.labeled_for_each(instance, output)[: len(results)]
            weights_of_results = saliency.saliency_interpret_from_json(labeled).values()
            for result, weights in zip(results, weights_of_results, strict=True):
                yield {"found": result, "words": _weighted_words(instance, weights)}

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
        names = names_of_texts(instances[0])
        return self._embedded_words.gradients(instances, names, self.cuda_device)

    def predictions_to_labeled_instances(
        self, instance: Instance, outputs: JsonDict
    ) -> list[Instance]:
        """The instance with the predicted label or tags."""
        if "label" in outputs:
            return [self.labeled(instance, label=LabelField(outputs["label"]))]
        tags = SequenceLabelField(outputs["tags"], instance["tokens"])
        return [self.labeled(instance, tags=tags)]

    def labeled(self, instance: Instance, **fields: Field) -> Instance:
        """A copy of an instance with what was predicted, for the loss."""
        copied: Instance = instance.duplicate()
        for name, field in fields.items():
            copied.add_field(name, field, self._model.vocab)
        return copied


def _weighted_words(instance: Instance, weights: dict[str, list[float]]) -> list[WeightedWord]:
    """
    The words of all texts of an instance, with their weights: those of the last text are
    `grad_input_1`.
    """
    names = names_of_texts(instance)
    words = []
    for number, name in enumerate(names):
        tokens = tokens_of(instance[name])
        for position, weight in enumerate(weights[f"grad_input_{len(names) - number}"]):
            word: Any = {"input": name} if len(names) > 1 else {}
            word["text"] = tokens[position].text
            offsets = offsets_of(tokens, position, position)
            if offsets:
                word["start"] = offsets["start_char"]
                word["end"] = offsets["end_char"]
            word["weight"] = weight
            words.append(word)
    return words


def names_of_texts(instance: Instance) -> list[str]:
    """The names of the texts of an instance, in the order in which a model embeds them."""
    names = []
    for name, field in instance.fields.items():
        # A document is a list of sentences.
        text = field[0] if isinstance(field, ListField) else field
        if isinstance(text, TextField):
            names.append(name)
    return names


def _embedder_of(model: Model) -> tuple[str, TextFieldEmbedder]:
    """The embedder of a model, with its name."""
    for name, module in model.named_children():
        if isinstance(module, TextFieldEmbedder):
            return name, module
    raise ValueError(f"expected a model with a text field embedder, got {type(model).__name__}")


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
        self, instances: list[Instance], names: Sequence[str], device: int
    ) -> tuple[dict[str, Any], JsonDict]:
        """
        The gradients of the loss of instances with labels, by name, and the model's output. The
        first is for the last of the texts, of which `names` has the fields in the order in which
        the model embeds them: AllenNLP has the order of a backward pass. The model is not changed,
        so other threads may predict.
        """
        (original,) = self._model
        batch = Batch(instances)
        batch.index_instances(original.vocab)
        tensors = move_to_device(batch.as_tensor_dict(), device)
        model = _shared_copy(original)
        embedder_name, embedder = _embedder_of(model)
        texts = []
        for name in names:
            for instance in instances:
                texts.append(instance[name])
        watched = _Watched(embedder, self, texts)
        setattr(model, embedder_name, watched)
        # cuDNN has no gradients in evaluation mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            output = model(**tensors)
            gradients = torch.autograd.grad(output["loss"], watched.leaves)
        arrays = {}
        for number, gradient in enumerate(reversed(gradients), start=1):
            arrays[f"grad_input_{number}"] = gradient.cpu().numpy()
        for key, value in output.items():
            if isinstance(value, torch.Tensor):
                output[key] = value.detach()
        readable = model.make_output_human_readable(output)
        return arrays, {**readable, "loss": output["loss"]}


def _shared_copy(model: Model) -> Model:
    """
    A copy that shares modules, weights and vocabulary, so its embedder can be replaced and its
    metrics updated.
    """
    shared = [model.vocab, *model.children(), *model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(value): value for value in shared})


class _Watched(torch.nn.Module):
    """
    An embedder that passes the words of each text through a layer and keeps them in `leaves`, for
    gradients.
    """

    def __init__(
        self,
        embedder: TextFieldEmbedder,
        layer: EmbeddedWords,
        texts: Sequence[TextField | ListField],
    ) -> None:
        super().__init__()
        self._embedder = embedder
        self._layer = layer
        self._texts = texts
        self.leaves: list[torch.Tensor] = []

    def forward(self, *inputs: Any, **options: Any) -> torch.Tensor:
        with torch.no_grad():
            output = self._embedder(*inputs, **options)
        # Shape: (n_rows * timesteps, dim)
        words = output.flatten(0, -2)
        # The positions in `words` of each row. Shape: (n_rows, timesteps)
        positions = torch.arange(len(words), device=words.device).view(-1, output.size(-2))
        rows = iter(positions)
        for text in self._texts:
            # Shape: (n_words,)
            numbers = torch.cat(list(_positions_of(text, rows)))
            # Shape: (1, n_words, dim)
            leaf = self._layer(words[numbers][None]).detach().requires_grad_()
            self.leaves.append(leaf)
            words = words.index_copy(0, numbers, leaf[0])
        return words.view_as(output)


def _positions_of(
    text: TextField | ListField, rows: Iterator[torch.Tensor]
) -> Iterator[torch.Tensor]:
    """The positions of the words of a text, or of each sentence of a document."""
    sentences = text if isinstance(text, ListField) else [text]
    for sentence in sentences:
        yield next(rows)[: len(sentence)]
