"""
The layers of a checkpoint's words against those that `transformers` gives sentence by sentence, for a checkpoint that
was trained: `python benchmarks/transformer_layers.py CHECKPOINT TEXT`, a sentence a line.
"""

import argparse
from pathlib import Path

import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from transformers import AutoConfig, AutoModel, AutoTokenizer

from elmo_tasks.data import TransformerTokenIndexer
from elmo_tasks.modules import PretrainedTransformer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a folder, or a name on the hub")
    parser.add_argument("text", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--max-pieces", type=int, default=500, help="of a sentence: the library has no windows")
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()

    lines = arguments.text.read_text(encoding="utf-8").splitlines()
    config = AutoConfig.from_pretrained(arguments.checkpoint)
    # Tokenizers of bytes split words only with this; others have no such argument.
    options = {"add_prefix_space": True} if config.model_type in ("roberta", "gpt2") else {}
    tokenizer = AutoTokenizer.from_pretrained(arguments.checkpoint, **options)
    sentences = [
        words
        for words in (line.split() for line in lines if line.strip())
        if len(tokenizer(words, is_split_into_words=True).input_ids) <= arguments.max_pieces
    ][: arguments.sentences]
    network = AutoModel.from_pretrained(arguments.checkpoint).eval()
    if config.is_encoder_decoder:
        network = network.get_encoder()
    indexer = TransformerTokenIndexer(model_name=arguments.checkpoint)
    for pooling in ("first", "mean"):
        ours = PretrainedTransformer(model_name=arguments.checkpoint, pooling=pooling).eval()
        n_words, largest = 0, 0.0
        for first in range(0, len(sentences), arguments.batch_size):
            batch = sentences[first : first + arguments.batch_size]
            for words, layers in zip(batch, layers_of(batch, ours, indexer), strict=True):
                expected = layers_of_library(words, tokenizer, network, pooling)
                largest = max(largest, (layers[:, : len(words)] - expected).abs().max().item())
                n_words += len(words)
        print(f"{pooling:5}   {n_words:,} words   largest difference in any layer {largest:.1e}")


def layers_of(
    sentences: list[list[str]], model: PretrainedTransformer, indexer: TransformerTokenIndexer
) -> torch.Tensor:
    """Shape: (batch_size, n_layers, timesteps, dim)."""
    fields = (TextField([Token(word) for word in words], {"elmo": indexer}) for words in sentences)
    batch = Batch([Instance({"text": field}) for field in fields])
    batch.index_instances(Vocabulary())
    with torch.no_grad():
        return torch.stack(list(model(**batch.as_tensor_dict()["text"]["elmo"]).layers), dim=1)


def layers_of_library(words: list[str], tokenizer, network: torch.nn.Module, pooling: str) -> torch.Tensor:
    """Shape: (n_layers, timesteps, dim)."""
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        # Shape: (n_layers, n_pieces, dim)
        layers = torch.cat(network(**encoded, output_hidden_states=True).hidden_states)
    word_ids = encoded.word_ids()
    pieces = [[piece for piece, word in enumerate(word_ids) if word == number] for number in range(len(words))]
    return torch.stack([layers[:, p[:1] if pooling == "first" else p].mean(1) for p in pieces], dim=1)


if __name__ == "__main__":
    main()
