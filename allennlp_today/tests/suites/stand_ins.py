"""
Stand-ins for the transformers that AllenNLP's tests download: random weights in the architectures
and sizes of the real ones, with tokenizers from the words of the tests, in a cache of the Hugging
Face hub. What they compute means nothing, but code that loads and runs them is tested.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers as t
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

_REVISION = "0" * 40
_BERT_SPECIAL = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
_ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
# Tests ask for these as words of their own.
_LETTERS = ["▁a", "▁b", "▁1", "▁2", "▁A", "▁B"]


@dataclass(frozen=True)
class UnigramTokens:
    """The special tokens of a tokenizer, and where they are in a text and a pair of texts."""

    special: list[str]
    single: str
    pair: str
    in_templates: list[tuple[str, int]]
    has_accents: bool = True


_ALBERT = UnigramTokens(
    special=["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
    single="[CLS]:0 $A:0 [SEP]:0",
    pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
    in_templates=[("[CLS]", 2), ("[SEP]", 3)],
    has_accents=False,
)
_T5 = UnigramTokens(
    special=["<pad>", "</s>", "<unk>"],
    single="$A </s>",
    pair="$A </s> $B </s>",
    in_templates=[("</s>", 1)],
)
_XLNET = UnigramTokens(
    special=["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
    single="$A:0 <sep>:0 <cls>:2",
    pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
    in_templates=[("<sep>", 4), ("<cls>", 3)],
)


def write_stand_ins(cache: Path, sources: Path) -> None:
    """Writes all of them into the folder `cache`; `sources` has the tests of both packages."""
    torch.manual_seed(0)
    text = _text_of_tests(sources)
    bert = {"vocab_size": 30522}
    small = {"n_layers": 2}
    electra = dict(
        embedding_size=768,
        hidden_size=256,
        intermediate_size=1024,
        num_attention_heads=4,
        num_hidden_layers=12,
    )
    roberta = dict(max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)
    bart = dict(
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
    )
    t5 = {"d_kv": 64, "decoder_start_token_id": 0}
    t5_small = dict(d_model=512, d_ff=2048, num_layers=6, num_heads=8, **t5)
    cased = partial(_write_wordpieces, lower=False)
    uncased = partial(_write_wordpieces, lower=True)
    as_roberta = partial(_write_bpe, is_roberta=True)
    as_gpt2 = partial(_write_bpe, is_roberta=False)
    write = partial(_write, cache, text)

    write("bert-base-cased", cased, t.BertForPreTraining, t.BertConfig(vocab_size=28996))
    write("bert-base-uncased", uncased, t.BertForPreTraining, t.BertConfig(**bert))
    write(
        "distilbert-base-uncased",
        uncased,
        t.DistilBertForMaskedLM,
        t.DistilBertConfig(**bert, **small),
    )
    german = t.DistilBertConfig(vocab_size=31102, **small)
    write("distilbert-base-german-cased", cased, t.DistilBertForMaskedLM, german)
    write(
        "google/electra-base-generator",
        uncased,
        t.ElectraForMaskedLM,
        t.ElectraConfig(**bert, **electra),
    )
    write(
        "roberta-base",
        as_roberta,
        t.RobertaForMaskedLM,
        t.RobertaConfig(vocab_size=50265, **roberta),
    )
    for name, d_model in (("sshleifer/bart-tiny-random", 24), ("facebook/bart-large", 64)):
        config = t.BartConfig(vocab_size=50265, d_model=d_model, **bart)
        write(name, as_roberta, t.BartForConditionalGeneration, config)
    write(
        "sshleifer/tiny-gpt2",
        as_gpt2,
        t.GPT2LMHeadModel,
        t.GPT2Config(n_embd=2, n_head=2, n_layer=2),
    )
    write("gpt2", as_gpt2, t.GPT2LMHeadModel, t.GPT2Config(n_layer=2))
    albert = t.AlbertConfig(
        vocab_size=30000, hidden_size=768, intermediate_size=3072, num_attention_heads=12
    )
    write("albert-base-v2", partial(_write_unigram, _ALBERT), t.AlbertForMaskedLM, albert)
    xlnet = t.XLNetConfig(d_model=64, n_layer=2, n_head=2, d_inner=64)
    write("xlnet-base-cased", partial(_write_unigram, _XLNET), t.XLNetLMHeadModel, xlnet)
    tiny = t.T5Config(vocab_size=32128, d_model=64, d_ff=256, num_layers=2, num_heads=2, **t5)
    for name, config in (
        ("patrickvonplaten/t5-tiny-random", tiny),
        ("t5-small", t.T5Config(vocab_size=32128, **t5_small)),
        ("t5-base", t.T5Config(vocab_size=32128, **t5_small)),
    ):
        write(name, partial(_write_unigram, _T5), t.T5ForConditionalGeneration, config)
    # This one is in the tests' own folder.
    dummy = _snapshot(cache, "epwalsh/bert-xsmall-dummy")
    shutil.copytree(
        sources / "models" / "test_fixtures" / "bert-xsmall-dummy", dummy, dirs_exist_ok=True
    )


def write_stand_ins_of_projects(cache: Path, sources: Path) -> None:
    """Writes those of the projects in `projects.txt`; `sources` has the projects."""
    torch.manual_seed(0)
    cased = partial(_write_wordpieces, lower=False)
    uncased = partial(_write_wordpieces, lower=True)
    as_roberta = partial(_write_bpe, is_roberta=True)
    as_gpt2 = partial(_write_bpe, is_roberta=False)
    write = partial(_write, cache, _text_of_tests(sources))
    layers = {"num_hidden_layers": 2}
    roberta = dict(
        vocab_size=50265,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        **layers,
    )

    biomedical = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"
    for name in ("bert-base-uncased", biomedical):
        write(name, uncased, t.BertForPreTraining, t.BertConfig(vocab_size=30522, **layers))
    write("bert-base-cased", cased, t.BertForPreTraining, t.BertConfig(vocab_size=28996, **layers))
    write(
        "distilbert-base-cased",
        cased,
        t.DistilBertForMaskedLM,
        t.DistilBertConfig(vocab_size=28996, n_layers=2),
    )
    for name in ("distilroberta-base", "roberta-base"):
        write(name, as_roberta, t.RobertaForMaskedLM, t.RobertaConfig(**roberta))
    large = t.RobertaConfig(
        hidden_size=1024, num_attention_heads=16, intermediate_size=256, **roberta
    )
    write("roberta-large", as_roberta, t.RobertaForMaskedLM, large)
    write("gpt2", as_gpt2, t.GPT2LMHeadModel, t.GPT2Config(n_layer=2))
    longformer = dict(
        attention_window=1024,
        max_encoder_position_embeddings=16384,
        encoder_layers=2,
        decoder_layers=2,
    )
    longformer |= dict(d_model=768, encoder_ffn_dim=64, decoder_ffn_dim=64)
    led = t.LEDConfig(vocab_size=50265, **longformer)
    write("allenai/led-base-16384", as_roberta, t.LEDForConditionalGeneration, led)


def _text_of_tests(sources: Path) -> str:
    texts = []
    paths = [*sources.glob("*/tests/**/*.py"), *sources.glob("*/*fixtures/**/*")]
    for path in sorted(paths):
        if path.is_file() and path.stat().st_size < 300_000:
            try:
                texts.append(path.read_text(encoding="utf-8"))
            except UnicodeDecodeError:
                continue
    return "\n".join(texts)


def _snapshot(cache: Path, name: str) -> Path:
    """The folder of the files of a model, as huggingface_hub looks for it."""
    repository = cache / f"models--{name.replace('/', '--')}"
    folder = repository / "snapshots" / _REVISION
    folder.mkdir(parents=True, exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(_REVISION)
    return folder


def _write(
    cache: Path,
    text: str,
    name: str,
    write_tokenizer: Callable[..., None],
    model: type,
    config: t.PretrainedConfig,
) -> None:
    folder = _snapshot(cache, name)
    built = model(config)
    built.save_pretrained(folder)
    # The name that AllenNLP's tests ask for.
    torch.save(built.state_dict(), folder / "pytorch_model.bin")
    write_tokenizer(folder, text, config.vocab_size)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _write_wordpieces(folder: Path, text: str, size: int, *, lower: bool) -> None:
    if lower:
        text = text.lower()
    characters = [character for character in sorted(set(text)) if _is_visible(character)]
    pieces = [*characters]
    pieces += [f"##{character}" for character in characters]
    pieces += ["##ing", "##s", "##ed", "##er", "##NL", "##P", "##nl", "##p"]
    counts = Counter(re.findall(r"\w+", text))
    for word, _ in counts.most_common(16000):
        # Tests expect that AllenNLP is more than one wordpiece.
        if len(word) > 1 and word.lower() != "allennlp":
            pieces.append(word)
    pieces += [f"[pad{i}]" for i in range(size)]
    vocabulary = dict(_BERT_SPECIAL)
    vocabulary |= {f"[unused{i - 1}]": i for i in range(1, 100)}
    for piece in pieces:
        if len(vocabulary) < size:
            vocabulary.setdefault(piece, len(vocabulary))
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    pair = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
    special = [("[CLS]", 101), ("[SEP]", 102)]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS]:0 $A:0 [SEP]:0", pair, special)
    tokenizer.add_special_tokens(list(_BERT_SPECIAL))
    tokenizer.save(str(folder / "tokenizer.json"))
    lines = sorted(vocabulary, key=vocabulary.get)
    (folder / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write_json(folder / "tokenizer_config.json", {"do_lower_case": lower, "model_max_length": 512})


def _is_visible(character: str) -> bool:
    return character.isprintable() and not character.isspace()


def _write_bpe(folder: Path, text: str, size: int, *, is_roberta: bool) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=_ROBERTA_SPECIAL if is_roberta else ["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text[:3_000_000]], trainer)
    content = json.loads(tokenizer.to_str())
    vocabulary = content["model"]["vocab"]
    for i in range(len(vocabulary), size - is_roberta):
        vocabulary[f"madeupword{i:04d}"] = i
    if is_roberta:
        vocabulary["<mask>"] = size - 1
        flags = {
            "single_word": False,
            "lstrip": True,
            "rstrip": False,
            "normalized": True,
            "special": True,
        }
        content["added_tokens"].append({"id": size - 1, "content": "<mask>", **flags})
        ends = {"sep": ["</s>", 2], "cls": ["<s>", 0]}
        content["post_processor"] = {
            "type": "RobertaProcessing",
            **ends,
            "trim_offsets": True,
            "add_prefix_space": False,
        }
    else:
        options = {"add_prefix_space": True, "trim_offsets": False, "use_regex": True}
        content["post_processor"] = {"type": "ByteLevel", **options}
    _write_json(folder / "tokenizer.json", content)
    _write_json(folder / "vocab.json", vocabulary)
    lines = ["#version: 0.2"]
    for merge in content["model"]["merges"]:
        lines.append(merge if isinstance(merge, str) else " ".join(merge))
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write_json(folder / "tokenizer_config.json", {"model_max_length": 512 if is_roberta else 1024})


def _write_unigram(tokens: UnigramTokens, folder: Path, text: str, size: int) -> None:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    if not tokens.has_accents:
        steps = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
        tokenizer.normalizer = normalizers.Sequence(steps)
    trainer = trainers.UnigramTrainer(
        vocab_size=6000, special_tokens=tokens.special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(text[:600_000].split("\n"), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        tokens.single, tokens.pair, tokens.in_templates
    )
    content = json.loads(tokenizer.to_str())
    scores = dict(content["model"]["vocab"]) | dict.fromkeys(_LETTERS, -3.0)
    content["model"]["vocab"] = list(scores.items())
    _write_json(folder / "tokenizer.json", content)
    _write_json(folder / "tokenizer_config.json", {"model_max_length": 512})
