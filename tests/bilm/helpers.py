"""Small biLMs with random weights, and Hypothesis strategies for their shapes and sentences."""

from pathlib import Path

import numpy as np
import torch
from hypothesis import strategies as st

from elmo_tasks.bilm import Bilm, BilmOptions

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


def random_bilm(options: BilmOptions = SMALL, *, seed: int = 0, std: float = 0.3, stateful: bool = False) -> Bilm:
    """A biLM with all parameters drawn from a normal distribution, because zero biases would hide reading errors."""
    bilm = Bilm(options, stateful=stateful)
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


def lstm_by_the_formula(
    inputs: np.ndarray,
    kernel: np.ndarray,
    bias: np.ndarray,
    projection: np.ndarray,
    clips: tuple[float | None, float | None],
    before: tuple[np.ndarray | float, np.ndarray | float] = (0.0, 0.0),
) -> tuple[np.ndarray, np.ndarray]:
    """Word by word, by the docstring of `ProjectedLstm`: all outputs, and the memory after `before` and the words."""
    cell_clip, projection_clip = (np.inf if clip is None else clip for clip in clips)
    output, memory = (np.zeros(n) + values for n, values in zip(projection.shape[::-1], before, strict=True))
    outputs = []
    for word in inputs:
        i, g, f, o = np.split(np.concatenate([word, output]) @ kernel + bias, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f + 1, o))
        memory = np.clip(f * memory + i * np.tanh(g), -cell_clip, cell_clip)
        output = np.clip((o * np.tanh(memory)) @ projection, -projection_clip, projection_clip)
        outputs.append(output)
    return np.stack(outputs), memory


def likelihoods_by_the_formula(
    bilm: Bilm, softmax: tuple[torch.Tensor, torch.Tensor], numbers: dict[str, int], sentence: list[str]
) -> tuple[float, float]:
    """
    The log-likelihood of a sentence in each direction, by weight and bias of a softmax over the words of `numbers`. The
    first word is predicted from only the boundary, with the vector of an empty sentence.
    """
    weight, bias = (tensor.double() for tensor in softmax)
    words, dim = [numbers.get(word, numbers["<UNK>"]) for word in sentence], bilm.options.projection_dim
    with torch.no_grad():
        top, alone = bilm([sentence]).layers[-1][0], bilm.contexts([[]]).hidden
    forward = zip([alone[0, 0], *top[:, :dim]], [*words, numbers["</S>"]], strict=True)
    backward = zip([*top[:, dim:], alone[1, 0]], [numbers["<S>"], *words], strict=True)
    sums = []
    for pairs in (forward, backward):
        sums.append(sum(float((weight @ each.double() + bias).log_softmax(0)[word]) for each, word in pairs))
    return sums[0], sums[1]


def layers_alone(bilm: Bilm, sentence: list[str]) -> np.ndarray:
    """Shape `(n_layers, n_words, dim)`, from a batch of only this sentence."""
    return np.stack([layer[0].numpy() for layer in bilm([sentence]).layers])


def allennlp_layers(bilm: torch.nn.Module, character_ids: torch.Tensor) -> list[torch.Tensor]:
    """The layers of AllenNLP's `_ElmoBiLm` for a batch, in the form of `BilmOutput.layers`."""
    from allennlp.nn.util import remove_sentence_boundaries

    output = bilm(character_ids)
    return [remove_sentence_boundaries(layer, output["mask"])[0] for layer in output["activations"]]


def assert_layers_equal(ours: tuple[torch.Tensor, ...], theirs: list[torch.Tensor], atol: float) -> None:
    """Checks that all layers have equal shapes, and equal values to within `atol`."""
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=0.0, atol=atol)


def words() -> st.SearchStrategy[str]:
    """Mostly short words that repeat, but also anything a file may contain: any code point, long and boundary words."""
    short = st.text("abé.", min_size=1, max_size=5)
    anything = st.text(st.characters(), min_size=1, max_size=20)
    long = st.builds(lambda text, n: text * n, st.text("aé😀", min_size=1, max_size=2), st.integers(10, 60))
    return st.one_of(short, short, anything, long, st.sampled_from(["<S>", "</S>"]))


def batches(max_size: int = 4) -> st.SearchStrategy[list[list[str]]]:
    """At least one sentence; any of them may be empty."""
    return st.lists(st.lists(words(), max_size=6), min_size=1, max_size=max_size)


@st.composite
def bilm_options(draw: st.DrawFn) -> BilmOptions:
    """Small biLMs of every shape."""
    clips = st.none() | st.integers(1, 3) | st.floats(0.05, 3.0)
    return BilmOptions(
        cell_dim=draw(st.integers(1, 9)),
        projection_dim=draw(st.integers(1, 7)),
        n_layers=draw(st.integers(1, 3)),
        cell_clip=draw(clips),
        projection_clip=draw(clips),
        character_dim=draw(st.integers(1, 4)),
        filters=tuple(draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=3))),
        n_highway=draw(st.integers(0, 2)),
        activation=draw(st.sampled_from(["relu", "tanh"])),
    )
