"""
The time of a training step in each of the six tasks: `python benchmarks/tasks.py`.

Compares the models of the published configs, without ELMo and with it (layers from a warm cache),
with AllenNLP's own model for the task, of the same size and without ELMo: `crf_tagger`, `esim`,
`bcn`, `bidaf`, `srl` and `coref`. All take turns on the same batches in one process, so a busy
machine slows all; the ratio of the times per step (forward, backward, clipping of the norm,
optimizer) is what counts. The data is in `ELMO_TASKS_DATA`, by default the included sample data.
"""

import argparse
import copy
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from allennlp.common import Params
from allennlp.common.plugins import import_plugins
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.models import Model
from allennlp.nn.util import move_to_device
from allennlp.training.optimizers import Optimizer
from allennlp_models.coref.util import make_coref_instance

CONFIGS = Path(__file__).resolve().parent.parent / "training_configs"
TASKS = ("ner", "snli", "sst", "squad", "srl", "coref")
# Our registered names, and AllenNLP's.
PLAIN = {
    "elmo_lstm": "lstm",
    "elmo_gru": "gru",
    "elmo_character_encoding": "character_encoding",
    "elmo_cnn": "cnn",
    "elmo_fused_adam": "adam",
}

Batch = dict[str, Any]
Config = dict[str, Any]


def plain(config: Any) -> Any:
    """
    A config with torch's and AllenNLP's classes instead of ours. AllenNLP's `cnn` has no partial
    windows.
    """
    if isinstance(config, list):
        return [plain(value) for value in config]
    if not isinstance(config, dict):
        return config
    result = {}
    for key, value in config.items():
        if key == "type":
            result[key] = PLAIN.get(value, value)
        elif key != "partial_windows":
            result[key] = plain(value)
    return result


def allennlp_model(task: str, model: Config, n_labels: int) -> Config:
    """The config of AllenNLP's model for a task, with the sizes of ours."""
    make_config = ALLENNLP_MODELS[task]
    return {
        **make_config(model, n_labels),
        "text_field_embedder": model["text_field_embedder"],
    }


def crf_tagger(model: Config, n_labels: int) -> Config:
    return {
        "type": "crf_tagger",
        "encoder": {"type": "compose", "encoders": model["encoders"]},
        "dropout": model["dropout"],
    }


def esim(model: Config, n_labels: int) -> Config:
    logit = {
        "input_dim": model["output_feedforward"]["hidden_dims"],
        "num_layers": 1,
        "hidden_dims": n_labels,
        "activations": "linear",
    }
    return {
        "type": "esim",
        "matrix_attention": {"type": "dot_product"},
        "output_logit": logit,
        "encoder": model["encoder"],
        "projection_feedforward": model["projection_feedforward"],
        "inference_encoder": model["inference_encoder"],
        "output_feedforward": model["output_feedforward"],
        "dropout": model["dropout"],
    }


def bcn(model: Config, n_labels: int) -> Config:
    output = copy.deepcopy(model["output_feedforward"])
    n_hidden = output["num_layers"]
    output["num_layers"] += 1
    output["hidden_dims"].append(n_labels)
    output["activations"] = ["relu"] * n_hidden + ["linear"]
    output["dropout"].append(0.0)
    return {
        "type": "bcn",
        "output_layer": output,
        "embedding_dropout": model["embedding_dropout"],
        "pre_encode_feedforward": model["pre_encode_feedforward"],
        "encoder": model["encoder"],
        "integrator": model["integrator"],
        "integrator_dropout": model["integrator_dropout"],
    }


def bidaf(model: Config, n_labels: int) -> Config:
    phrase = model["contextual_encoder"]
    width = 2 * phrase["hidden_size"]
    attention = {
        "type": "linear",
        "combination": "x,y,x*y",
        "tensor_1_dim": width,
        "tensor_2_dim": width,
    }
    return {
        "type": "bidaf",
        "num_highway_layers": 2,
        "phrase_layer": phrase,
        "matrix_attention": attention,
        "modeling_layer": {**phrase, "input_size": 4 * width, "num_layers": 2},
        "span_end_encoder": {**phrase, "input_size": 7 * width},
        "dropout": model["dropout"],
    }


def srl(model: Config, n_labels: int) -> Config:
    ours = model["encoder"]
    encoder = {
        "type": "alternating_lstm",
        "input_size": ours["input_size"],
        "hidden_size": ours["hidden_size"],
        "num_layers": ours["num_layers"],
        "recurrent_dropout_probability": ours["recurrent_dropout_probability"],
        "use_highway": True,
        "use_input_projection_bias": ours["use_input_projection_bias"],
    }
    return {
        "type": "srl",
        "encoder": encoder,
        "binary_feature_dim": model["predicate_dim"],
        "srl_eval_path": None,
    }


def coref(model: Config, n_labels: int) -> Config:
    encoder = model["encoder"]
    feature_dim = model["feature_dim"]
    span_width = 2 * 2 * encoder["hidden_size"] + encoder["input_size"] + feature_dim
    layers = {
        "num_layers": 2,
        "hidden_dims": model["hidden_dim"],
        "activations": "relu",
        "dropout": model["dropout"],
    }
    return {
        "type": "coref",
        "context_layer": encoder,
        "mention_feedforward": {"input_dim": span_width, **layers},
        "antecedent_feedforward": {"input_dim": 3 * span_width + feature_dim, **layers},
        "feature_size": feature_dim,
        "lexical_dropout": model["lexical_dropout"],
        "max_span_width": model["max_span_width"],
        "spans_per_word": model["spans_per_word"],
        "max_antecedents": model["max_antecedents"],
    }


ALLENNLP_MODELS: dict[str, Callable[[Config, int], Config]] = {
    "ner": crf_tagger,
    "snli": esim,
    "sst": bcn,
    "squad": bidaf,
    "srl": srl,
    "coref": coref,
}


def allennlp_batches(
    task: str, batches: list[Batch], config: Config, vocab: Vocabulary
) -> list[Batch]:
    """The batches for AllenNLP's model."""
    if task in ("sst", "squad"):
        # `bcn` takes no metadata; with metadata, `bidaf` scores the answers in training, which ours
        # does not.
        return [without("metadata", batch) for batch in batches]
    if task != "coref":
        return batches
    reader = DatasetReader.from_params(Params(copy.deepcopy(config["dataset_reader"])))
    instances = []
    for batch in batches:
        for document in batch["metadata"]:
            instances.append(coref_instance(document, config["model"], reader))
    return batches_of(SimpleDataLoader(instances, batch_size=1), vocab)


def coref_instance(document: dict[str, Any], model: Config, reader: DatasetReader) -> Instance:
    """A document for AllenNLP's model, whose reader enumerates the spans."""
    sentences = document["sentences"][: model["max_sentences"]]
    n_words = sum(len(sentence) for sentence in sentences)
    clusters = []
    for cluster in document.get("clusters") or []:
        spans = [tuple(span) for span in cluster if span[1] < n_words]
        if len(spans) > 1:
            clusters.append(spans)
    instance: Instance = make_coref_instance(
        sentences, reader._token_indexers, model["max_span_width"], clusters
    )
    return instance


def batches_of(loader: Any, vocab: Vocabulary) -> list[Batch]:
    loader.index_with(vocab)
    return list(loader)


def load(config: Config, n_batches: int) -> tuple[list[Batch], Vocabulary]:
    """
    Batches from the beginning of the training data, and the vocabulary of all data that they were
    chosen from.
    """
    config = copy.deepcopy(config)
    reader_config = {**config["dataset_reader"], "max_instances": 100 * n_batches}
    reader = DatasetReader.from_params(Params(reader_config))
    loader = DataLoader.from_params(
        Params(config["data_loader"]), reader=reader, data_path=config["train_data_path"]
    )
    vocab = Vocabulary.from_params(Params(config["vocabulary"]), instances=loader.iter_instances())
    batches = batches_of(loader, vocab)
    # In random order, to get batches of all lengths.
    torch.manual_seed(1)
    chosen = torch.randperm(len(batches))[:n_batches]
    return [batches[index] for index in chosen], vocab


class Step:
    """A training step on the next batch; the batches repeat."""

    def __init__(self, model: Model, batches: list[Batch], trainer: Config, device: str) -> None:
        self.model = model.to(device).train()
        on_device = move_to_device(batches, torch.device(device))
        self._batches: Iterator[Batch] = itertools.cycle(on_device)
        trained = {}
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                trained[name] = parameter
        self._optimizer = Optimizer.from_params(
            Params(copy.deepcopy(trainer["optimizer"])), model_parameters=list(trained.items())
        )
        self._norm = trainer.get("grad_norm")
        self._parameters = list(trained.values())

    def __call__(self) -> None:
        self._optimizer.zero_grad()
        loss = self.model(**next(self._batches))["loss"]
        penalty = self.model.get_regularization_penalty()
        if penalty is not None:
            loss = loss + penalty
        loss.backward()
        if self._norm:
            torch.nn.utils.clip_grad_norm_(self._parameters, self._norm)
        self._optimizer.step()


def seconds(run: Callable[[], object], times: int = 1) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    clock = time.perf_counter
    if torch.get_num_threads() == 1 and not torch.cuda.is_available():
        # CPU time excludes the time that other processes take.
        clock = time.process_time
    start = clock()
    for _ in range(times):
        run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - start


def make(config: Config, vocab: Vocabulary) -> Model:
    torch.manual_seed(0)
    return Model.from_params(Params(copy.deepcopy(config)), vocab=vocab)


def steps_of(
    task: str, n_batches: int, device: str, cache: Path, models: list[str]
) -> dict[str, Step]:
    baseline = config_of(f"{task}.jsonnet")
    with_elmo = config_of(f"{task}_elmo.jsonnet", {"model.bilm.cache_folder": str(cache)})
    batches, vocab = load(with_elmo, n_batches)
    # An embedder without a biLM refuses its character ids.
    plain_batches = without("elmo", batches)
    ours = make(baseline["model"], vocab)
    steps = {"ours": Step(ours, plain_batches, baseline["trainer"], device)}
    if "AllenNLP" in models:
        config = plain(baseline)
        n_labels = vocab.get_vocab_size("labels")
        theirs = make(allennlp_model(task, config["model"], n_labels), vocab)
        their_batches = allennlp_batches(task, plain_batches, config, vocab)
        steps["AllenNLP"] = Step(theirs, their_batches, config["trainer"], device)
    if "ours + ELMo" in models:
        ours_with_elmo = make(with_elmo["model"], vocab)
        steps["ours + ELMo"] = Step(ours_with_elmo, batches, with_elmo["trainer"], device)
    return steps


def config_of(name: str, overrides: Config | None = None) -> Config:
    config: Config = Params.from_file(str(CONFIGS / name), overrides).as_dict(quiet=True)
    return config


def without(unwanted: str, value: Any) -> Any:
    """Lists and dictionaries without the values of a key, at any depth."""
    if isinstance(value, list):
        return [without(unwanted, child) for child in value]
    if isinstance(value, dict):
        return {key: without(unwanted, child) for key, child in value.items() if key != unwanted}
    return value


def compare(task: str, arguments: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with TemporaryDirectory() as cache:
        steps = steps_of(task, arguments.batches, device, Path(cache), arguments.models)
        times: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(arguments.repeats + 1):
            for name, step in steps.items():
                elapsed = seconds(step, arguments.batches) / arguments.batches
                # The first turn warms up, and fills the cache.
                if turn > 0:
                    times[name].append(elapsed)
    our_times = times.pop("ours")
    print(f"{task:6} ours {statistics.median(our_times):7.3f} s a step", flush=True)
    for name, model_times in times.items():
        ratios = [theirs / ours for theirs, ours in zip(model_times, our_times, strict=True)]
        print(
            f"{'':6} {name:12} {statistics.median(model_times):7.3f} s, "
            f"{statistics.median(ratios):5.2f} of ours "
            f"({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def main() -> None:
    names = ["ours", "AllenNLP", "ours + ELMo"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument(
        "--models", nargs="+", choices=names, default=names, help="'ours' always runs"
    )
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    import_plugins()
    print(f"torch {torch.__version__}, {arguments.threads} threads")
    for task in arguments.tasks:
        compare(task, arguments)


if __name__ == "__main__":
    main()
