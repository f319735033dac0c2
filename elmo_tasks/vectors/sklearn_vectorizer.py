"""A transformer for scikit-learn: texts in, a matrix out."""

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from elmo_tasks.files.shipped import DEFAULT_BILM
from elmo_tasks.text.words import Sentence, Tokenizer
from elmo_tasks.vectors.elmo import Elmo, Precision
from elmo_tasks.vectors.layers import Layers, Pool

__all__ = ["ElmoVectorizer"]


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """
    Transforms texts into vectors, one per text, in scikit-learn pipelines. There is nothing to fit.
    The biLM is loaded on first use, and again after unpickling or cloning, which keep only its
    name.

    # Parameters

    bilm, device, precision
        See `Elmo.from_pretrained`.
    layers, weights, gamma, batch_tokens
        See `Elmo.embed_iter`. `"all"` layers are concatenated.
    pool
        How the vectors of words are combined into one: see `pooled`. `None`: `"mean"`, because a
        row is one text.
    tokenizer
        See `Elmo`.
    """

    def __init__(
        self,
        bilm: str | PathLike[str] = DEFAULT_BILM,
        *,
        layers: Layers = "mix",
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        pool: Pool | None = "mean",
        batch_tokens: int | None = None,
        tokenizer: Tokenizer | None = None,
        device: str | None = None,
        precision: Precision | None = None,
    ) -> None:
        self.bilm = bilm
        self.layers = layers
        self.weights = weights
        self.gamma = gamma
        self.pool = pool
        self.batch_tokens = batch_tokens
        self.tokenizer = tokenizer
        self.device = device
        self.precision = precision

    def fit(self, X: Iterable[Sentence], y: Any = None) -> "ElmoVectorizer":
        """Loads the biLM. Neither `X` nor `y` is read."""
        self._elmo()
        return self

    def transform(self, X: Iterable[Sentence]) -> np.ndarray:
        """
        # Parameters

        X
            Texts, or lists of words. The biLM reads each as one sequence.

        # Returns

        `np.ndarray`
            Shape `(n_texts, dim)`, or `(n_texts, n_layers * dim)` for `"all"` layers, float32. The
            vector of a text without words is zero.
        """
        # A table would be read as lists of words, or as the names of its columns.
        shape = getattr(X, "shape", ())
        if len(shape) > 1:
            if shape[1:] != (1,):
                raise ValueError(f"expected a list of texts or one column, got the shape {shape}")
            X = np.asarray(X)[:, 0]
        vectors = self._elmo().embed(
            X,
            layers=self.layers,
            weights=self.weights,
            gamma=self.gamma,
            pool=self.pool or "mean",
            batch_tokens=self.batch_tokens,
            progress=False,
        )
        if not vectors:
            return np.zeros((0, self._n_features_out), np.float32)
        # Shape: (n_texts, dim), or (n_texts, n_layers * dim)
        return np.stack(vectors).reshape(len(vectors), -1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.requires_fit = False
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_loaded", None)
        return state

    @property
    def _n_features_out(self) -> int:
        elmo = self._elmo()
        if self.layers == "all":
            return elmo.dim * elmo.n_layers
        return elmo.dim

    def _elmo(self) -> Elmo:
        settings: dict[str, Any] = {
            "bilm": self.bilm,
            "device": self.device,
            "precision": self.precision,
            "tokenizer": self.tokenizer,
        }
        # Not set by `__init__`, because a clone has only its parameters.
        loaded: tuple[dict[str, Any], Elmo] | None = self.__dict__.get("_loaded")
        # The parameters of an estimator may be set again at any time.
        if loaded is None or loaded[0] != settings:
            loaded = (settings, Elmo.from_pretrained(**settings))
            self._loaded = loaded
        return loaded[1]
