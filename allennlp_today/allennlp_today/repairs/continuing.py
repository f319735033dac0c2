"""Trainings of AllenNLP 2.10.1 that continue from an archive (`"type": "from_archive"`)."""

from collections.abc import Iterator
from typing import Any, Optional

from allennlp_today.import_hooks import Module, after_import, replace, replaces
from allennlp_today.trust import read_config

__all__: list[str] = []


@after_import("allennlp.commands.train")
def write_whole_configs(train: Module) -> None:
    """
    Symptom: the archive of a training that continues from a different archive loads only where the
    other one is, and only if it is trusted.
    Cause: its config has the path of the other archive. Now it also has the model of that config.
    """

    @replaces(train, "train_model")
    def train_model(original: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
        model = params.params.get("model")
        if isinstance(model, dict) and model.get("type") == "from_archive":
            params["model"] = {**model, "model": _model_of(model["archive_file"])}
        return original(params, *args, **kwargs)


def _model_of(archive: str) -> Any:
    """The model in the config of an archive, without the files of its first weights."""
    from allennlp.common import Params
    from allennlp.common.file_utils import cached_path
    from allennlp.common.params import remove_keys_from_params

    params = Params(read_config(cached_path(archive)))
    remove_keys_from_params(params.get("model"))
    return params.params["model"]


@after_import("allennlp.models.model")
def save_the_words_of_archives(model: Module) -> None:
    """
    Symptom: the vocabulary of a training that continues from an archive lacks the words of that
    archive. New labels end in an error of torch, such as `Target 5 is out of bounds`.
    Cause: `Model.from_archive` extends all namespaces of its own vocabulary, which is not saved.
    """
    original = model.Model.from_archive.__func__

    # `FromParams` reads its signature.
    def from_archive(
        cls: type,
        archive_file: str,
        vocab: Optional[Any] = None,
        model: Optional[dict[str, Any]] = None,
    ) -> Any:
        continued = original(cls, archive_file)
        if vocab is not None:
            _check_labels(continued, vocab, archive_file)
            continued.vocab.extend_from_vocab(vocab)
            continued.extend_embedder_vocab()
            # The run saves this vocabulary.
            vars(vocab).update(vars(continued.vocab))
        return continued

    from_archive.__doc__ = original.__doc__
    replace(model.Model, "from_archive", classmethod(from_archive))


def _check_labels(model: Any, vocabulary: Any, archive: str) -> None:
    """Raises an error if the data have labels that the model of an archive cannot predict."""
    from allennlp.common.checks import ConfigurationError

    for namespace in sorted(_label_namespaces(model, vocabulary)):
        labels_of_model = model.vocab.get_token_to_index_vocabulary(namespace)
        labels_of_data = vocabulary.get_token_to_index_vocabulary(namespace)
        new = sorted(set(labels_of_data) - set(labels_of_model))
        if new:
            raise ConfigurationError(
                f"expected the {namespace} of {archive} ({len(labels_of_model)}), "
                f"got {len(new)} new, such as {new[0]!r:.60}: for new labels, train a new model "
                "that starts with its weights, by an initializer of type 'pretrained'"
            )


def _label_namespaces(model: Any, vocabulary: Any) -> Iterator[str]:
    """The namespaces of labels, which have no entry for unknown ones and are not embedded."""
    from allennlp.common.util import namespace_match

    embedded = {getattr(module, "_vocab_namespace", None) for module in model.modules()}
    in_both = model.vocab.get_namespaces() & vocabulary.get_namespaces()
    patterns = vocabulary._non_padded_namespaces
    for namespace in in_both - embedded:
        if any(namespace_match(pattern, namespace) for pattern in patterns):
            yield namespace
