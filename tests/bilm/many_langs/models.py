"""
Small ELMoForManyLangs models with random weights, and their layers, computed from the formulas in
NumPy.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

CHARACTERS = [*"abcdé나는고양이😀\u3000", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "cab", "나는", "고양이", "\u3000", "abcdabcd"]
FILTERS = [[1, 3], [2, 2], [4, 3]]
N_FILTERS, PROJECTION, CELL = 8, 6, 5
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
    (folder / "config.json").write_text(
        json.dumps({"config_path": f"/of/another/machine/{network}", "gpu": 3})
    )
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
    for name, keys in (
        ("char.dic", CHARACTERS if char_dim else []),
        ("word.dic", WORDS if word_dim else []),
    ):
        if keys:
            lines = [f"{key}\t{number}\n" for number, key in enumerate(keys)]
            (folder / name).write_text("".join(lines), encoding="utf-8")
    for name, state in _states(char_dim, word_dim, n_highway).items():
        torch.save(state, folder / name, _use_new_zipfile_serialization=is_new_format)
    return folder


def _states(char_dim: int, word_dim: int, n_highway: int) -> dict[str, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> torch.Tensor:
        return 0.7 * torch.randn(*shape, generator=generator)

    embedder, n_filters = {}, N_FILTERS if char_dim else 0
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
    encoder = {}
    for layer in (
        f"{direction}_layer_{k}" for direction in ("forward", "backward") for k in (0, 1)
    ):
        encoder[f"{layer}.input_linearity.weight"] = random(4 * CELL, PROJECTION)
        encoder[f"{layer}.state_linearity.weight"] = random(4 * CELL, PROJECTION)
        encoder[f"{layer}.state_linearity.bias"] = random(4 * CELL)
        encoder[f"{layer}.state_projection.weight"] = random(PROJECTION, CELL)
    return {"token_embedder.pkl": embedder, "encoder.pkl": encoder}


def layers_by_hand(folder: Path, sentence: list[str]) -> np.ndarray:
    """
    The layers of a sentence by the formulas of Che et al. (2018) and their code, of shape
    `(3, n_words, 12)`.
    """
    network = json.loads((folder / "cnn_small.json").read_text())["token_embedder"]
    embedder, encoder = (
        {key: value.double().numpy() for key, value in torch.load(folder / f"{name}.pkl").items()}
        for name in ("token_embedder", "encoder")
    )
    tokens = np.stack([_token(embedder, network, word) for word in ["<bos>", *sentence, "<eos>"]])
    forward, backward = (
        _lstms(encoder, "forward", tokens),
        _lstms(encoder, "backward", tokens[::-1]),
    )
    layers = [
        np.concatenate([one, other[::-1]], 1) for one, other in zip(forward, backward, strict=True)
    ]
    return np.stack(layers)[:, 1:-1]


def _token(weights: dict[str, np.ndarray], network: dict[str, Any], word: str) -> np.ndarray:
    limit = network["max_characters_per_token"]
    word = word[: limit - 2]
    parts = []
    if network["word_dim"]:
        row = WORDS.index(word) if word in WORDS else WORDS.index("<oov>")
        parts.append(weights["word_emb_layer.embedding.weight"][row])
    if network["char_dim"]:
        inner = [word] if word in ("<bos>", "<eos>") else list(word)
        keys = ["<eow>", *(key if key in CHARACTERS else "<oov>" for key in inner), "<bow>"]
        keys += ["<pad>"] * (limit - len(keys))
        rows = weights["char_emb_layer.embedding.weight"][[CHARACTERS.index(key) for key in keys]]
        pooled = []
        for k, (width, _) in enumerate(FILTERS):
            filters, bias = weights[f"convolutions.{k}.weight"], weights[f"convolutions.{k}.bias"]
            windows = [
                np.tensordot(filters, rows[p : p + width].T, 2) for p in range(limit - width + 1)
            ]
            pooled.append(np.max(windows, 0) + bias)
        x = np.concatenate(pooled)
        x = np.tanh(x) if network["activation"] == "tanh" else np.maximum(x, 0)
        for k in range(network["n_highway"]):
            new, gate = np.split(
                weights[HIGHWAY.format(k, "weight")] @ x + weights[HIGHWAY.format(k, "bias")], 2
            )
            gate = 1 / (1 + np.exp(-gate))
            x = gate * x + (1 - gate) * np.maximum(new, 0)
        parts.append(x)
    return weights["projection.weight"] @ np.concatenate(parts) + weights["projection.bias"]


def _lstms(weights: dict[str, np.ndarray], direction: str, inputs: np.ndarray) -> list[np.ndarray]:
    layers = [inputs]
    for k in (0, 1):
        name = f"{direction}_layer_{k}"
        h, c, outputs = np.zeros(PROJECTION), np.zeros(CELL), []
        for u in layers[-1]:
            z = (
                weights[f"{name}.input_linearity.weight"] @ u
                + weights[f"{name}.state_linearity.weight"] @ h
            )
            i, f, g, o = np.split(z + weights[f"{name}.state_linearity.bias"], 4)
            i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
            c = np.clip(i * np.tanh(g) + f * c, -0.6, 0.6)
            h = np.clip(weights[f"{name}.state_projection.weight"] @ (o * np.tanh(c)), -0.7, 0.7)
            outputs.append(h)
        layers.append(np.stack(outputs) + (layers[-1] if k else 0))
    return layers
