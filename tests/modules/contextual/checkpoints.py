"""
Tiny checkpoints of each family of transformers with random weights, in the hub's format, made
without a network.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

from tests.paths import FIXTURES

_SIZE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
POSITIONS = 40
_N_PIECES = 150


def write_checkpoint(family: str, folder: Path) -> Path:
    """Writes the checkpoint of a family, one of `FAMILIES`, as `save_pretrained` does."""
    tokenizer, make = FAMILIES[family]()
    torch.manual_seed(0)
    model = make(len(tokenizer)).eval()
    with torch.no_grad():
        # Random weights of the usual scale give all pieces nearly the same vector; T5's weights are
        # larger.
        for parameter in model.parameters():
            if parameter.dim() > 1 and family != "t5":
                parameter.mul_(10)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _text() -> list[str]:
    return (FIXTURES / "lm" / "train.txt").read_text(encoding="utf-8").splitlines()[:100]


def _word_piece(special: list[str]) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        _text(), trainers.WordPieceTrainer(vocab_size=_N_PIECES, special_tokens=special)
    )
    return tokenizer


def _unigram(special: list[str], unknown: str) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=_N_PIECES, special_tokens=special, unk_token=unknown
    )
    tokenizer.train_from_iterator(_text(), trainer)
    return tokenizer


def _template(tokenizer: tokenizers.Tokenizer, single: str, *special: str) -> None:
    ids = [(token, tokenizer.token_to_id(token)) for token in special]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)


def _bert() -> Any:
    tokenizer = _word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    _template(tokenizer, "[CLS]:0 $A:0 [SEP]:0", "[CLS]", "[SEP]")
    fast = transformers.BertTokenizerFast(tokenizer_object=tokenizer, do_lower_case=False)
    # Like the published one: trained on masked words, without the pooler, which word vectors do not
    # need.
    return fast, lambda size: transformers.BertForMaskedLM(
        transformers.BertConfig(vocab_size=size, max_position_embeddings=POSITIONS, **_SIZE)
    )


def _electra() -> Any:
    tokenizer = _word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    _template(tokenizer, "[CLS]:0 $A:0 [SEP]:0", "[CLS]", "[SEP]")
    fast = transformers.ElectraTokenizerFast(tokenizer_object=tokenizer, do_lower_case=False)
    return fast, lambda size: transformers.ElectraForPreTraining(
        transformers.ElectraConfig(
            vocab_size=size, embedding_size=8, max_position_embeddings=POSITIONS, **_SIZE
        )
    )


def _roberta() -> Any:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(_text(), trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    fast = transformers.RobertaTokenizerFast(tokenizer_object=tokenizer)
    # Positions start after the padding position.
    return fast, lambda size: transformers.RobertaForMaskedLM(
        transformers.RobertaConfig(
            vocab_size=size, max_position_embeddings=POSITIONS + 2, pad_token_id=1, **_SIZE
        )
    )


def _gpt() -> Any:
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=_N_PIECES, special_tokens=["<unk>"], end_of_word_suffix="</w>"
    )
    tokenizer.train_from_iterator(_text(), trainer)
    fast = transformers.OpenAIGPTTokenizerFast(tokenizer_object=tokenizer)
    return fast, lambda size: transformers.OpenAIGPTLMHeadModel(
        transformers.OpenAIGPTConfig(
            vocab_size=size, n_positions=POSITIONS, n_embd=16, n_layer=2, n_head=2
        )
    )


def _xlnet() -> Any:
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
    tokenizer = _unigram(special, "<unk>")
    _template(tokenizer, "$A:0 <sep>:0 <cls>:2", "<sep>", "<cls>")
    fast = transformers.XLNetTokenizerFast(tokenizer_object=tokenizer)
    return fast, lambda size: transformers.XLNetLMHeadModel(
        transformers.XLNetConfig(vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=24)
    )


def _albert() -> Any:
    tokenizer = _unigram(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], "<unk>")
    _template(tokenizer, "[CLS]:0 $A:0 [SEP]:0", "[CLS]", "[SEP]")
    fast = transformers.AlbertTokenizerFast(tokenizer_object=tokenizer)
    return fast, lambda size: transformers.AlbertForMaskedLM(
        transformers.AlbertConfig(
            vocab_size=size, embedding_size=8, max_position_embeddings=POSITIONS, **_SIZE
        )
    )


def _t5() -> Any:
    tokenizer = _unigram(["<pad>", "</s>", "<unk>"], "<unk>")
    _template(tokenizer, "$A:0 </s>:0", "</s>")
    fast = transformers.T5TokenizerFast(tokenizer_object=tokenizer, extra_ids=0)
    return fast, lambda size: transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=size, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2
        )
    )


def reference_layers(folder: Path, words: list[str], pooling: str = "avg") -> list[torch.Tensor]:
    """
    The layers of a sentence from the library itself, each of shape `(n_words, dim)`. Its tokenizer
    splits the words one by one, as AllenNLP does, and its model reads all pieces in one pass.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **tokenizer_kwargs(folder))
    model = transformers.AutoModel.from_pretrained(folder).eval()
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    encoding = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        layers = model(**encoding, output_hidden_states=True).hidden_states
    of_words = [
        [i for i, word in enumerate(encoding.word_ids()) if word == number]
        for number in range(len(words))
    ]
    chosen = [pieces[:1] if pooling == "first" else pieces for pieces in of_words]
    return [torch.stack([layer[0, pieces].mean(0) for pieces in chosen]) for layer in layers]


def tokenizer_kwargs(folder: Path) -> dict[str, bool]:
    """Byte-level tokenizers need this argument to split words; others do not have it."""
    return {"add_prefix_space": True} if folder.name == "roberta" else {}


FAMILIES: dict[str, Callable[[], Any]] = {
    "bert": _bert,
    "roberta": _roberta,
    "gpt": _gpt,
    "xlnet": _xlnet,
    "albert": _albert,
    "t5": _t5,
    "electra": _electra,
}
