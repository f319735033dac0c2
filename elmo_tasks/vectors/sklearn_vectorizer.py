"""A transformer for scikit-learn: texts in, a matrix out."""

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np

from elmo_tasks.vectors.elmo import Elmo, Precision
from elmo_tasks.vectors.pooling import Pool
from elmo_tasks.vectors.sentences import Sentence, Tokenizer

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "ElmoVectorizer is a transformer for scikit-learn, which is not installed. Remedy: `pip install scikit-learn`",
        name=error.name,
    ) from error

__all__ = ["ElmoVectorizer"]


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """
    A transformer of texts into vectors, one a text, for scikit-learn's pipelines. There is nothing to fit: the biLM is
    loaded at the first use, and again where the transformer is unpickled or cloned, which carry only its name.

    # Parameters

    bilm
        A name or a folder: see `Elmo.from_pretrained`.
    layers, weights, gamma, batch_tokens
        See `Elmo.embed_iter`. `"all"` layers would be several vectors a text.
    pool
        How the vectors of words become one: see `pooled`.
    tokenizer
        See `Elmo`.
    device, precision
        See `Elmo.from_pretrained`.

    # Raises

    `ValueError`
        From `fit` and `transform`, if an argument has another value.
    """

    def __init__(
        self,
        bilm: str | PathLike[str] = "small-open",
        *,
        layers: Literal["mix", "top"] | int = "mix",
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        pool: Pool = "mean",
        batch_tokens: int = 4096,
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
        """
        Checks the settings, and that the biLM is there. Neither `X` nor `y` is read.

        # Returns

        `ElmoVectorizer`
            Itself.
        """
        _check_texts(X)
        self._embed([])
        return self

    def transform(self, X: Iterable[Sentence]) -> np.ndarray:
        """
        # Parameters

        X
            Texts, or lists of words; each is one sequence to the biLM.

        # Returns

        `np.ndarray`
            Shape `(n_texts, dim)`, float32. A text without words has zeros.

        # Raises

        `ValueError`
            If `X` is a single string or has two dimensions, or a text is neither a string nor a list of words.
        """
        _check_texts(X)
        rows = self._embed(X)
        # Shape: (n_texts, dim)
        return np.stack(rows) if rows else np.zeros((0, self._n_features_out), np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.requires_fit = False
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_loaded"}

    @property
    def _n_features_out(self) -> int:
        return self._elmo().dim

    def _elmo(self) -> Elmo:
        settings = (self.bilm, self.device, self.precision, self.tokenizer)
        # The parameters of an estimator may be set again at any time.
        loaded = self.__dict__.get("_loaded")
        if loaded is None or loaded[0] != settings:
            elmo = Elmo.from_pretrained(
                self.bilm, device=self.device, precision=self.precision, tokenizer=self.tokenizer
            )
            loaded = self._loaded = (settings, elmo)
        return loaded[1]

    def _embed(self, texts: Iterable[Sentence]) -> list[np.ndarray]:
        if self.pool is None or str(self.layers) == "all":
            raise ValueError(
                f"a text must have one vector, but pool is {self.pool!r} and layers {self.layers!r}: give a pool, and "
                "layers other than 'all'"
            )
        return self._elmo().embed(
            texts,
            layers=self.layers,
            weights=self.weights,
            gamma=self.gamma,
            pool=self.pool,
            batch_tokens=self.batch_tokens,
            progress=False,
        )


def _check_texts(texts: object) -> None:
    if isinstance(texts, str):
        raise ValueError(f"X must be a list of texts, but is the string {texts[:60]!r}: put it into a list")
    # A table would be read as lists of words, or as the names of its columns.
    if len(getattr(texts, "shape", ())) > 1:
        raise ValueError(
            f"X must be a list of texts or one column, but has the shape {texts.shape}: select the column, in a "  # type: ignore[attr-defined]
            "ColumnTransformer by its name and not by a list of names"
        )
