"""
Small ELMoForManyLangs models with random weights, and their layers, computed from the formulas in
NumPy.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

CHARACTERS = [*"abcdé나는고양이😀\u3000", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "cab", "나는", "고양이", "\u3000", "abcdabcd"]
FILTERS = [[1, 3], [2, 2], [4, 3]]
N_FILTERS = 8
PROJECTION = 6
CELL = 5
HIGHWAY = "highways._layers.{}.{}"

SENTENCES = [
    ["cab", "나는", "고양이", "."],
    [],
    ["abcdabcdabcd", "b", "<bos>", "\u3000", "😀", "<pad>"],
    ["Cab"],
]


def write_model(
    folder: Path,
    *,
    char_dim: int = 4,
    word_dim: int = 3,
    max_characters: int = 10,
    n_highway: int = 2,
    activation: str = "relu",
    is_new_format: bool = True,
    network: str | None = "cnn_small.json",
) -> Path:
    """
    Writes the folder of a model; `network` names the file that describes it, and `None` omits that
    file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {"config_path": f"/of/another/machine/{network}", "gpu": 3}
    (folder / "config.json").write_text(json.dumps(config))
    if network is not None:
        embedder = dict(
            name="cnn",
            activation=activation,
            filters=FILTERS,
            n_highway=n_highway,
            word_dim=word_dim,
            char_dim=char_dim,
            max_characters_per_token=max_characters,
        )
        encoder = dict(
            name="elmo",
            projection_dim=PROJECTION,
            dim=CELL,
            n_layers=2,
            cell_clip=0.6,
            proj_clip=0.7,
        )
        (folder / network).write_text(json.dumps({"token_embedder": embedder, "encoder": encoder}))
    if char_dim:
        _write_dictionary(folder / "char.dic", CHARACTERS)
    if word_dim:
        _write_dictionary(folder / "word.dic", WORDS)
    generator = torch.Generator().manual_seed(1)
    states = {
        "token_embedder.pkl": _embedder_state(char_dim, word_dim, n_highway, generator),
        "encoder.pkl": _encoder_state(generator),
    }
    for name, state in states.items():
        torch.save(state, folder / name, _use_new_zipfile_serialization=is_new_format)
    return folder


def _write_dictionary(file: Path, keys: list[str]) -> None:
    lines = [f"{key}\t{number}\n" for number, key in enumerate(keys)]
    file.write_text("".join(lines), encoding="utf-8")


def _embedder_state(
    char_dim: int, word_dim: int, n_highway: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:

    def random(*shape: int) -> torch.Tensor:
        return 0.7 * torch.randn(*shape, generator=generator)

    embedder = {}
    n_filters = N_FILTERS if char_dim else 0
    if word_dim:
        embedder["word_emb_layer.embedding.weight"] = random(len(WORDS), word_dim)
    if char_dim:
        embedder["char_emb_layer.embedding.weight"] = random(len(CHARACTERS), char_dim)
        for k, (width, number) in enumerate(FILTERS):
            embedder[f"convolutions.{k}.weight"] = random(number, char_dim, width)
            embedder[f"convolutions.{k}.bias"] = random(number)
        for k in range(n_highway):
            embedder[HIGHWAY.format(k, "weight")] = random(2 * N_FILTERS, N_FILTERS)
            embedder[HIGHWAY.format(k, "bias")] = random(2 * N_FILTERS)
    embedder["projection.weight"] = random(PROJECTION, word_dim + n_filters)
    embedder["projection.bias"] = random(PROJECTION)
    return embedder


def _encoder_state(generator: torch.Generator) -> dict[str, torch.Tensor]:

    def random(*shape: int) -> torch.Tensor:
        return 0.7 * torch.randn(*shape, generator=generator)

    encoder = {}
    for direction, number in product(("forward", "backward"), (0, 1)):
        layer = f"{direction}_layer_{number}"
        encoder[f"{layer}.input_linearity.weight"] = random(4 * CELL, PROJECTION)
        encoder[f"{layer}.state_linearity.weight"] = random(4 * CELL, PROJECTION)
        encoder[f"{layer}.state_linearity.bias"] = random(4 * CELL)
        encoder[f"{layer}.state_projection.weight"] = random(PROJECTION, CELL)
    return encoder


def _arrays(file: Path) -> dict[str, np.ndarray]:
    return {key: value.double().numpy() for key, value in torch.load(file).items()}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def layers_by_hand(folder: Path, sentence: list[str]) -> np.ndarray:
    """
    The layers of a sentence by the formulas of Che et al. (2018) and their code, of shape
    `(3, n_words, 12)`.
    """
    network = json.loads((folder / "cnn_small.json").read_text())["token_embedder"]
    embedder = _arrays(folder / "token_embedder.pkl")
    encoder = _arrays(folder / "encoder.pkl")
    tokens = np.stack([_token(embedder, network, word) for word in ["<bos>", *sentence, "<eos>"]])
    forward_layers = _lstms(encoder, "forward", tokens)
    backward_layers = _lstms(encoder, "backward", tokens[::-1])
    layers = []
    for forward, backward in zip(forward_layers, backward_layers, strict=True):
        layers.append(np.concatenate([forward, backward[::-1]], 1))
    return np.stack(layers)[:, 1:-1]


def _token(weights: dict[str, np.ndarray], network: dict[str, Any], word: str) -> np.ndarray:
    word = word[: network["max_characters_per_token"] - 2]
    vectors = []
    if network["word_dim"]:
        row = WORDS.index(word) if word in WORDS else WORDS.index("<oov>")
        vectors.append(weights["word_emb_layer.embedding.weight"][row])
    if network["char_dim"]:
        vectors.append(_vector_of_characters(weights, network, word))
    return weights["projection.weight"] @ np.concatenate(vectors) + weights["projection.bias"]


def _vector_of_characters(
    weights: dict[str, np.ndarray], network: dict[str, Any], word: str
) -> np.ndarray:
    n_columns = network["max_characters_per_token"]
    characters = [word] if word in ("<bos>", "<eos>") else list(word)
    known = [key if key in CHARACTERS else "<oov>" for key in characters]
    keys = ["<eow>", *known, "<bow>"]
    keys += ["<pad>"] * (n_columns - len(keys))
    rows = weights["char_emb_layer.embedding.weight"][[CHARACTERS.index(key) for key in keys]]
    pooled = []
    for k, (width, _) in enumerate(FILTERS):
        filters = weights[f"convolutions.{k}.weight"]
        bias = weights[f"convolutions.{k}.bias"]
        windows = []
        for start in range(n_columns - width + 1):
            windows.append(np.tensordot(filters, rows[start : start + width].T, 2))
        pooled.append(np.max(windows, 0) + bias)
    x = np.concatenate(pooled)
    x = np.tanh(x) if network["activation"] == "tanh" else np.maximum(x, 0)
    for k in range(network["n_highway"]):
        products = weights[HIGHWAY.format(k, "weight")] @ x + weights[HIGHWAY.format(k, "bias")]
        new, carry = np.split(products, 2)
        gate = _sigmoid(carry)
        x = gate * x + (1 - gate) * np.maximum(new, 0)
    return x


def _lstms(weights: dict[str, np.ndarray], direction: str, inputs: np.ndarray) -> list[np.ndarray]:
    """The inputs, and the outputs of both layers."""
    layer_0 = _lstm(weights, f"{direction}_layer_0", inputs)
    layer_1 = _lstm(weights, f"{direction}_layer_1", layer_0) + layer_0
    return [inputs, layer_0, layer_1]


def _lstm(weights: dict[str, np.ndarray], name: str, inputs: np.ndarray) -> np.ndarray:
    h = np.zeros(PROJECTION)
    c = np.zeros(CELL)
    outputs = []
    for u in inputs:
        input_side = weights[f"{name}.input_linearity.weight"] @ u
        recurrent_side = weights[f"{name}.state_linearity.weight"] @ h
        z = input_side + recurrent_side + weights[f"{name}.state_linearity.bias"]
        i, f, g, o = np.split(z, 4)
        c = np.clip(_sigmoid(i) * np.tanh(g) + _sigmoid(f) * c, -0.6, 0.6)
        memory_out = _sigmoid(o) * np.tanh(c)
        h = np.clip(weights[f"{name}.state_projection.weight"] @ memory_out, -0.7, 0.7)
        outputs.append(h)
    return np.stack(outputs)
