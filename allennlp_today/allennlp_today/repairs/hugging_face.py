"""What transformers and huggingface-hub changed or removed after AllenNLP 2.10.1."""

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from allennlp_today.import_hooks import Module, after_import, around_import, replace, replaces


@after_import("transformers.tokenization_utils_base", "allennlp.common.cached_transformers")
def accept_current_tokenizers(module: Module) -> None:
    """
    Symptom: `PretrainedTransformerTokenizer` raises `add_special_tokens conflicts with the method`.
    `BertTokenizer has no attribute encode_plus` (other readers: `batch_encode_plus`; indexers with
    `max_length`: `build_inputs_with_special_tokens`; the reader `srl` with a `bert_model_name`:
    `wordpiece_tokenizer`). Cause: transformers refuses keywords that are also names of the
    tokenizer's methods (seen with 4.48). AllenNLP passes the flag again in every call to `encode`.
    transformers 5 has removed the four methods. The code of a project that calls tokenizers itself
    is repaired too.
    """
    base = sys.modules.get("transformers.tokenization_utils_base")
    # Programs without AllenNLP also import it.
    if base is None or "allennlp" not in sys.modules:
        return
    tokenizers = base.PreTrainedTokenizerBase

    @replaces(tokenizers, "from_pretrained")
    def from_pretrained(
        original: Any,
        cls: Any,
        *args: Any,
        add_special_tokens: Any = None,
        **kwargs: Any,
    ) -> Any:
        return original(cls, *args, **kwargs)

    replace(tokenizers, "wordpiece_tokenizer", _Wordpieces())
    removed_methods = {
        "encode_plus": tokenizers.__call__,
        "batch_encode_plus": tokenizers.__call__,
        "build_inputs_with_special_tokens": _with_special_tokens,
    }
    for name, method in removed_methods.items():
        if not hasattr(tokenizers, name):
            replace(tokenizers, name, method)


@after_import("allennlp.common.cached_transformers")
def initialize_loaded_weights_again(cached_transformers: Module) -> None:
    """
    Symptom: `reinit_modules` changes no weights.
    Cause: transformers 5 marks the weights that it has loaded, and does not initialize marked ones.
    """

    class AutoModel(cached_transformers.AutoModel):
        @classmethod
        def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
            model = super().from_pretrained(*args, **kwargs)
            for parameter in model.parameters():
                vars(parameter).pop("_is_hf_initialized", None)
            return model

    replace(cached_transformers, "AutoModel", AutoModel)


def _with_special_tokens(tokenizer: Any, ids: list[int]) -> list[int]:
    """
    The former `build_inputs_with_special_tokens`: the ids between the special tokens that the
    tokenizer puts around a word.
    """
    word: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    surrounded: list[int] = tokenizer("a")["input_ids"]
    start = surrounded.index(word[0])
    end = start + len(word)
    return [*surrounded[:start], *ids, *surrounded[end:]]


class _Wordpieces:
    """
    A descriptor for the attribute `wordpiece_tokenizer`, which had a method `tokenize`. The slow
    tokenizers of transformers 4 set their own, which hides this one.
    """

    def __get__(self, tokenizer: Any, cls: type) -> Any:
        def tokenize(word: str) -> list[str]:
            pieces = tokenizer.backend_tokenizer.model.tokenize(word)
            return [piece.value for piece in pieces]

        return SimpleNamespace(tokenize=tokenize)


@after_import("allennlp.data.data_loaders.data_collator")
def mask_single_wordpieces(data_collator: Module) -> None:
    """
    Symptom: the collator `language_model` raises `IndexError: too many indices`. Cause: it passes
    the probability of masks by position, and transformers 5 has `whole_word_mask` there.
    """

    @replaces(data_collator, "DataCollatorForLanguageModeling")
    def collator(
        original: Any, tokenizer: Any, mlm: bool = True, mlm_probability: float = 0.15
    ) -> Any:
        return original(tokenizer=tokenizer, mlm=mlm, mlm_probability=mlm_probability)


@after_import("allennlp_models.generation.models.bart")
def accept_current_decoder_caches(bart: Module) -> None:
    """
    Symptom: the model `bart` raises an `AssertionError` without a message when it decodes, in
    validations and predictions. Cause: the cache of the decoder was a tuple of a layer's four
    tensors; in transformers 5 it is an `EncoderDecoderCache`, which yields six values per layer.
    """
    to_dict = bart.Bart._decoder_cache_to_dict
    to_cache = bart.Bart._dict_to_decoder_cache

    def decoder_cache_to_dict(decoder_cache: Any) -> dict[str, Any]:
        layers = [_tensors_of_layer(layer) for layer in decoder_cache]
        return to_dict(layers)

    def dict_to_decoder_cache(self: Any, cache_dict: dict[str, Any]) -> Any:
        import transformers

        cache = to_cache(self, cache_dict)
        if transformers.__version__.startswith("4."):
            return cache
        return transformers.EncoderDecoderCache(cache)

    replace(bart.Bart, "_decoder_cache_to_dict", staticmethod(decoder_cache_to_dict))
    replace(bart.Bart, "_dict_to_decoder_cache", dict_to_decoder_cache)


def _tensors_of_layer(layer: Sequence[Any]) -> Sequence[Any]:
    """The four tensors of a layer in a decoder's cache."""
    if len(layer) != 6:
        return layer
    # The third value of both halves is the size of a sliding window.
    keys, values, _, cross_keys, cross_values, _ = layer
    return keys, values, cross_keys, cross_values


@around_import("allennlp.training.optimizers")
def restore_transformers_adamw(module: str) -> Iterator[None]:
    """
    Symptom: `import allennlp.training` raises `module transformers has no attribute AdamW`. Cause:
    transformers has removed it (seen with 4.57). The replacement takes its steps: epsilon is added
    before the bias is corrected, which `correct_bias: false` leaves out, and the weights decay
    after the step.
    """
    import torch
    import transformers

    class AdamW(torch.optim.Optimizer):
        def __init__(self, params: Any, **options: Any) -> None:
            super().__init__(params, {"correct_bias": True, **options})

        @torch.no_grad()
        def step(self) -> None:  # type: ignore[override]
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        _adamw_step(parameter, self.state[parameter], group)

    current = getattr(transformers, "AdamW", AdamW)
    with mock.patch.object(transformers, "AdamW", current, create=True):
        yield


def _adamw_step(weight: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
    rate = group["lr"]
    beta1, beta2 = group["betas"]
    if "step" not in state:
        state["step"] = 0
        state["exp_avg"] = weight.new_zeros(weight.shape)
        state["exp_avg_sq"] = weight.new_zeros(weight.shape)
    state["step"] += 1
    mean = state["exp_avg"]
    mean.lerp_(weight.grad, 1 - beta1)
    square = state["exp_avg_sq"]
    square.mul_(beta2).addcmul_(weight.grad, weight.grad, value=1 - beta2)
    correction = 1.0
    if group["correct_bias"]:
        step = state["step"]
        correction = math.sqrt(1 - beta2**step) / (1 - beta1**step)
    weight.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-rate * correction)
    weight.mul_(1 - rate * group["weight_decay"])


@around_import("allennlp.common.push_to_hf")
def push_with_current_hub(module: str) -> Iterator[None]:
    """
    Symptom: `import allennlp` raises `cannot import name 'HfFolder' from 'huggingface_hub'`. Cause:
    huggingface-hub 1 has removed it and `Repository`. Now `allennlp push-to-hf` uploads the folder
    without git.
    """
    import huggingface_hub as hub

    class Api(hub.HfApi):
        def create_repo(self, name: str, organization: str | None = None, **kwargs: Any) -> Any:  # type: ignore[override]
            repo_id = f"{organization}/{name}" if organization else name
            return super().create_repo(repo_id, **kwargs)

    class Repository:
        def __init__(self, local_dir: Path, clone_from: Any, use_auth_token: str | bool) -> None:
            local_dir.mkdir(parents=True, exist_ok=True)
            self._folder = local_dir
            self._at_hub: Any = {"repo_id": clone_from.repo_id, "token": use_auth_token}

        def git_pull(self, rebase: bool) -> None:
            """AllenNLP keeps the text of an existing card."""
            hub.snapshot_download(
                local_dir=self._folder, allow_patterns="README.md", **self._at_hub
            )

        def lfs_track(self, patterns: Any) -> None:
            pass

        def push_to_hub(self, **options: Any) -> Any:
            return hub.upload_folder(folder_path=self._folder, **self._at_hub, **options)

    if hasattr(hub, "Repository"):
        yield
        return
    names: Any = {
        "HfApi": Api,
        "HfFolder": SimpleNamespace(get_token=hub.get_token),
        "Repository": Repository,
    }
    with mock.patch.multiple(hub, create=True, **names):
        yield
