"""Small biLMs with random weights, and Hypothesis strategies for their shapes and sentences."""

import operator
from pathlib import Path

import numpy as np
import torch
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.plain import PlainBilm, log_likelihood

SMALL = BilmOptions(
    cell_dim=8,
    projection_dim=6,
    n_layers=2,
    cell_clip=0.8,
    projection_clip=1.5,
    character_dim=3,
    filters=((1, 2), (3, 4), (7, 3)),
    n_highway=2,
)


def random_bilm(options: BilmOptions = SMALL, *, seed: int = 0, std: float = 0.3) -> Bilm:
    """
    A biLM with all parameters drawn from a normal distribution, because zero biases would hide
    reading errors.
    """
    bilm = Bilm(options)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(std=std, generator=generator)
        # The row for padding, which the public format lacks.
        bilm.character_encoder.embedding.weight[0] = 0.0
    return bilm.requires_grad_(False)


def save(bilm: Bilm, folder: str | Path, **kwargs: torch.dtype) -> tuple[str, str]:
    """Writes `options.json` and `weights.hdf5` and returns their paths."""
    options_file, weight_file = f"{folder}/options.json", f"{folder}/weights.hdf5"
    bilm.save(options_file, weight_file, **kwargs)
    return options_file, weight_file


def plain_of(bilm: Bilm) -> PlainBilm:
    """The plain model with the same weights, in the same type."""
    plain = PlainBilm(bilm.options).to(next(bilm.parameters()).dtype)
    plain.load_state_dict(bilm.state_dict())
    return plain


def plain_layers(plain: PlainBilm, sentences: list[list[str]]) -> tuple[torch.Tensor, ...]:
    """The layers of a batch, in the form of `BilmOutput.layers`."""
    # Shape: (n_words, n_layers, dim), each
    layers_of_sentences = []
    for sentence in sentences:
        with_boundaries = plain(sentence)
        layers_of_sentences.append(with_boundaries[:, 1:-1].transpose(0, 1))
    return pad_sequence(layers_of_sentences, batch_first=True).unbind(2)


def plain_likelihoods(
    bilm: Bilm,
    softmax: tuple[torch.Tensor, torch.Tensor],
    numbers: dict[str, int],
    sentence: list[str],
) -> list[float]:
    """
    The log-likelihood of a sentence, forward and backward, by a softmax over the words of
    `numbers`.
    """
    unknown = numbers["<UNK>"]
    targets = [numbers.get(word, unknown) for word in ["<S>", *sentence, "</S>"]]
    weight, bias = softmax
    plain = plain_of(bilm).double()
    with torch.no_grad():
        top = plain(sentence)[-1]
        likelihoods = log_likelihood(top, torch.tensor(targets), weight.double(), bias.double())
    return likelihoods.tolist()


def layers_alone(bilm: Bilm, sentence: list[str]) -> np.ndarray:
    """Shape `(n_layers, n_words, dim)`, from a batch of only this sentence."""
    return np.stack([layer[0].numpy() for layer in bilm([sentence]).layers])


def allennlp_layers(bilm: torch.nn.Module, character_ids: torch.Tensor) -> list[torch.Tensor]:
    """The layers of AllenNLP's `_ElmoBiLm` for a batch, in the form of `BilmOutput.layers`."""
    from allennlp.nn.util import remove_sentence_boundaries

    output = bilm(character_ids)
    layers = []
    for layer in output["activations"]:
        without_boundaries, _ = remove_sentence_boundaries(layer, output["mask"])
        layers.append(without_boundaries)
    return layers


def assert_layers_equal(
    ours: tuple[torch.Tensor, ...], theirs: list[torch.Tensor], atol: float
) -> None:
    """Checks that all layers have equal shapes, and equal values to within `atol`."""
    assert len(ours) == len(theirs)
    for our_layer, their_layer in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our_layer, their_layer, rtol=0.0, atol=atol)


def words() -> st.SearchStrategy[str]:
    """
    Mostly short words that repeat, but also anything a file may contain: any code point, long and
    boundary words.
    """
    short = st.text("abé.", min_size=1, max_size=5)
    anything = st.text(st.characters(), min_size=1, max_size=20)
    syllables = st.text("aé😀", min_size=1, max_size=2)
    long = st.builds(operator.mul, syllables, st.integers(10, 60))
    boundaries = st.sampled_from(["<S>", "</S>"])
    return st.one_of(short, short, anything, long, boundaries)


def batches(max_size: int = 4) -> st.SearchStrategy[list[list[str]]]:
    """At least one sentence; any of them may be empty."""
    sentences = st.lists(words(), max_size=6)
    return st.lists(sentences, min_size=1, max_size=max_size)


@st.composite
def bilm_options(draw: st.DrawFn) -> BilmOptions:
    """Small biLMs of every shape."""
    clips = st.none() | st.integers(1, 3) | st.floats(0.05, 3.0)
    widths_and_counts = st.tuples(st.integers(1, 9), st.integers(1, 4))
    filters = st.lists(widths_and_counts, min_size=1, max_size=3).map(tuple)
    return BilmOptions(
        cell_dim=draw(st.integers(1, 9)),
        projection_dim=draw(st.integers(1, 7)),
        n_layers=draw(st.integers(1, 3)),
        cell_clip=draw(clips),
        projection_clip=draw(clips),
        character_dim=draw(st.integers(1, 4)),
        filters=draw(filters),
        n_highway=draw(st.integers(0, 2)),
        activation=draw(st.sampled_from(["relu", "tanh"])),
    )
