"""ELMo as a layer of spaCy's trainable components: `@architectures = "elmo_tasks.Elmo.v1"`."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, Literal

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Maxout, Model, Shim, chain, concatenate, with_array
from thinc.types import Floats2d
from thinc.util import get_torch_default_device, torch2xp, xp2torch

from elmo_tasks.bilm.layer_cache import LayerMemory
from elmo_tasks.bilm.outputs import mix_layers
from elmo_tasks.files.shipped import DEFAULT_BILM
from elmo_tasks.spacy.pipeline import PipelineBilm, sentences_in, with_white_space
from elmo_tasks.vectors.batching import embed_groups
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.layers import Layers

__all__ = ["elmo_tok2vec"]

_LONG_SENTENCE = 200
_LONG_WARNING = (
    f"a sentence of the training data has more than {_LONG_SENTENCE} words: ELMo reads a document "
    "without sentence boundaries as one sentence (see `spacy convert -n 1` and "
    "annotating_components)"
)


def elmo_tok2vec(
    bilm: str = DEFAULT_BILM,
    layers: Literal["mix", "top"] | int = "mix",
    width: int | None = None,
    embed: Model[list[Doc], list[Floats2d]] | None = None,
    save_weights: bool = True,
    cache_gb: float = 2.0,
) -> Model[list[Doc], list[Floats2d]]:
    """
    A layer that represents each token by a frozen biLM. The weights of its mix, Eq. (1) of the
    paper, are trained. spaCy's config takes it as the `tok2vec` of a component, as the model of the
    component `tok2vec`, and as the `embed` of `spacy.Tok2Vec.v2`. The vectors have shape
    `(n_tokens, width)`, zero for white space if `width` is `None`.

    # Parameters

    bilm
        A name or a folder: see `Elmo.from_pretrained`.
    layers
        `"mix"` mixes all layers, `"top"` uses only the highest, and a number only that layer (0 is
        the context-insensitive one). A single layer is still scaled by `gamma`.
    width
        The width of the vectors, by a maxout layer with layer normalisation: in `spacy.Tok2Vec.v2`,
        the width of its `encode`. `None`: no such layer.
    embed
        A trainable embedding of the tokens, such as `spacy.MultiHashEmbed.v2`, whose vectors are
        concatenated.
    save_weights
        Whether the trained pipeline contains the biLM. `False`: only the name, `bilm`.
    cache_gb
        Memory for the layers of sentences, so that training computes them once. 0: they are
        computed in each epoch, as in a pipeline where this layer is in `frozen_components`.
    """
    layers_to_mix = "all" if layers == "mix" else layers
    frozen = _FrozenBilm(bilm, layers_to_mix, save_weights=save_weights, cache_gb=cache_gb)
    model: Model[list[Doc], list[Floats2d]] = Model(
        "elmo",
        _forward,
        init=_initialize,
        dims={"nO": None},
        params={"layer_weights": None, "gamma": None},
        shims=[frozen],
    )
    if embed is not None:
        model = concatenate(model, embed)
    if width is not None:
        maxout = Maxout(width, nP=3, dropout=0.0, normalize=True)
        model = chain(model, with_array(maxout))
    return model


class _FrozenBilm(PipelineBilm, Shim):
    """The biLM in a Thinc model, which saves it with the trained parameters."""

    def __init__(self, bilm: str, layers: Layers, *, save_weights: bool, cache_gb: float) -> None:
        Shim.__init__(self, None)
        PipelineBilm.__init__(self, bilm, save_weights=save_weights)
        self.layers = layers
        self._store: LayerMemory | None = None
        if cache_gb:
            self._store = LayerMemory(cache_gb * 1e9, keeps_first=True)
        self._caching_elmo: Elmo | None = None

    def layers_of(self, docs: list[Doc], is_train: bool) -> list[np.ndarray]:
        """The layers of each document, of shape `(n_layers, n_tokens, dim)`."""
        if is_train and self._caching_elmo is None:
            # From the first step of training, also for the development data.
            self._caching_elmo = Elmo(self.elmo.bilm, layer_cache=self._store)
        groups = []
        longest = 0
        for doc in docs:
            sentences = []
            for sentence in sentences_in(doc):
                sentences.append([word.text for word in sentence])
                longest = max(longest, len(sentence))
            groups.append((doc, sentences))
        if is_train and longest > _LONG_SENTENCE:
            warnings.warn(_LONG_WARNING, stacklevel=2)
        embedded = embed_groups(self._embed, groups)
        return [with_white_space(doc, words) for doc, words in embedded]

    def _embed(self, sentences: Iterable[list[str]]) -> Iterator[np.ndarray]:
        elmo = self._caching_elmo or self.elmo
        for array in elmo.embed_iter(sentences, layers=self.layers, progress=False):
            if array.ndim == 2:
                # A single layer has no axis of layers.
                array = array[None]
            yield array

    def finish_update(self, optimizer: Any) -> None:
        """Does nothing: the biLM is frozen."""

    def to_device(self, device_type: str, device_id: int) -> None:
        self.elmo.bilm.to(get_torch_default_device())

    def copy(self) -> "_FrozenBilm":
        # `nlp.replace_listeners` copies the layer, and the copies share one biLM.
        return copy(self)


def _initialize(model: Model[Any, Any], X: Any = None, Y: Any = None) -> None:
    bilm: Any = model.shims[0]
    bilm.initialize()
    n_layers = bilm.elmo.n_layers if bilm.layers == "all" else 1
    model.set_dim("nO", bilm.elmo.dim)
    model.set_param("layer_weights", model.ops.alloc1f(n_layers))
    model.set_param("gamma", model.ops.alloc1f(1) + 1)


def _forward(
    model: Model[Any, Any], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Eq. (1) of the paper."""
    bilm: Any = model.shims[0]
    # Thinc's types are wider than what the functions return.
    to_xp: Any = torch2xp
    weights = xp2torch(model.get_param("layer_weights"), requires_grad=is_train)
    gamma = xp2torch(model.get_param("gamma"), requires_grad=is_train)
    # Shape: (n_layers,)
    scaled = gamma * weights.softmax(0)
    vectors = []
    for array in bilm.layers_of(docs, is_train):
        layers = torch.from_numpy(array).to(scaled).unbind()
        # Shape: (n_tokens, dim)
        vectors.append(mix_layers(layers, scaled))

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        gradients = [xp2torch(gradient) for gradient in d_vectors]
        torch.autograd.backward(vectors, gradients)
        model.inc_grad("layer_weights", to_xp(weights.grad))
        model.inc_grad("gamma", to_xp(gamma.grad))
        return []

    return [to_xp(array.detach()) for array in vectors], backprop
