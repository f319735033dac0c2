"""
The time of a training step in each of the six tasks: `python benchmarks/tasks.py`.

Compares the models of the published configs, without ELMo and with it (layers from a warm cache),
with AllenNLP's own model for the task, of the same size and without ELMo: `crf_tagger`, `esim`,
`bcn`, `bidaf`, `srl` and `coref`. All take turns on the same batches in one process, so a busy
machine slows all; the ratio of the times per step (forward, backward, clipping, optimizer) is what
counts. The data is in `ELMO_TASKS_DATA`, by default the included sample data.
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


def plain(config: Any) -> Any:
    """
    A config with torch's and AllenNLP's classes instead of ours. AllenNLP's `cnn` has no partial
    windows.
    """
    if isinstance(config, list):
        return [plain(value) for value in config]
    if not isinstance(config, dict):
        return config
    return {
        key: PLAIN.get(value, value) if key == "type" else plain(value)
        for key, value in config.items()
        if key != "partial_windows"
    }


def allennlp_model(task: str, model: dict[str, Any], n_labels: int) -> dict[str, Any]:
    """The config of AllenNLP's model for a task, with the sizes of ours."""
    embedder = {"text_field_embedder": model["text_field_embedder"]}
    if task == "ner":
        encoders = {"type": "compose", "encoders": model["encoders"]}
        return {"type": "crf_tagger", "encoder": encoders, "dropout": model["dropout"], **embedder}
    if task == "snli":
        parts = (
            "encoder",
            "projection_feedforward",
            "inference_encoder",
            "output_feedforward",
            "dropout",
        )
        logit = {
            "input_dim": model["output_feedforward"]["hidden_dims"],
            "num_layers": 1,
            "hidden_dims": n_labels,
            "activations": "linear",
        }
        attention = {"type": "dot_product"}
        kept = {part: model[part] for part in parts}
        return {
            "type": "esim",
            "matrix_attention": attention,
            "output_logit": logit,
            **kept,
            **embedder,
        }
    if task == "sst":
        parts = (
            "embedding_dropout",
            "pre_encode_feedforward",
            "encoder",
            "integrator",
            "integrator_dropout",
        )
        output = copy.deepcopy(model["output_feedforward"])
        output["num_layers"] += 1
        output["hidden_dims"] = [*output["hidden_dims"], n_labels]
        output["activations"] = [*["relu"] * (output["num_layers"] - 1), "linear"]
        output["dropout"] = [*output["dropout"], 0.0]
        return {
            "type": "bcn",
            "output_layer": output,
            **{part: model[part] for part in parts},
            **embedder,
        }
    if task == "squad":
        phrase = model["contextual_encoder"]
        width = 2 * phrase["hidden_size"]
        return {
            "type": "bidaf",
            "num_highway_layers": 2,
            "phrase_layer": phrase,
            "matrix_attention": {
                "type": "linear",
                "combination": "x,y,x*y",
                "tensor_1_dim": width,
                "tensor_2_dim": width,
            },
            "modeling_layer": {**phrase, "input_size": 4 * width, "num_layers": 2},
            "span_end_encoder": {**phrase, "input_size": 7 * width},
            "dropout": model["dropout"],
            **embedder,
        }
    if task == "srl":
        encoder = {
            "type": "alternating_lstm",
            "input_size": model["encoder"]["input_size"],
            "hidden_size": model["encoder"]["hidden_size"],
            "num_layers": model["encoder"]["num_layers"],
            "recurrent_dropout_probability": model["encoder"]["recurrent_dropout_probability"],
            "use_highway": True,
            "use_input_projection_bias": model["encoder"]["use_input_projection_bias"],
        }
        return {
            "type": "srl",
            "encoder": encoder,
            "binary_feature_dim": model["predicate_dim"],
            "srl_eval_path": None,
            **embedder,
        }
    encoder = model["encoder"]
    span_width = 2 * 2 * encoder["hidden_size"] + encoder["input_size"] + model["feature_dim"]
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
        "antecedent_feedforward": {"input_dim": 3 * span_width + model["feature_dim"], **layers},
        "feature_size": model["feature_dim"],
        "lexical_dropout": model["lexical_dropout"],
        **{key: model[key] for key in ("max_span_width", "spans_per_word", "max_antecedents")},
        **embedder,
    }


def allennlp_batches(
    task: str, batches: list[Batch], config: dict[str, Any], vocab: Vocabulary
) -> list[Batch]:
    """The batches for AllenNLP's model. Its coreference reader enumerates the spans."""
    if task in ("sst", "squad"):
        # `bcn` takes no metadata; with metadata, `bidaf` scores the answers in training, which ours
        # does not.
        return [
            {key: value for key, value in batch.items() if key != "metadata"} for batch in batches
        ]
    if task != "coref":
        return batches
    reader = DatasetReader.from_params(Params(copy.deepcopy(config["dataset_reader"])))
    instances = []
    for document in (document for batch in batches for document in batch["metadata"]):
        words_before = [
            0,
            *itertools.accumulate(len(sentence) for sentence in document["sentences"]),
        ]
        n_words = words_before[min(config["model"]["max_sentences"], len(words_before) - 1)]
        clusters = [
            [tuple(span) for span in cluster if span[1] < n_words]
            for cluster in document.get("clusters") or []
        ]
        instance: Instance = make_coref_instance(
            document["sentences"][: config["model"]["max_sentences"]],
            reader._token_indexers,
            config["model"]["max_span_width"],
            [cluster for cluster in clusters if len(cluster) > 1],
        )
        instances.append(instance)
    return batches_of(SimpleDataLoader(instances, batch_size=1), vocab)


def batches_of(loader: Any, vocab: Vocabulary) -> list[Batch]:
    loader.index_with(vocab)
    return list(loader)


def load(config: dict[str, Any], n_batches: int) -> tuple[list[Batch], Vocabulary]:
    """
    Batches from the beginning of the training data, and the vocabulary of all data that they were
    chosen from.
    """
    config = copy.deepcopy(config)
    reader = DatasetReader.from_params(
        Params({**config["dataset_reader"], "max_instances": 100 * n_batches})
    )
    loader = DataLoader.from_params(
        Params(config["data_loader"]), reader=reader, data_path=config["train_data_path"]
    )
    vocab = Vocabulary.from_params(Params(config["vocabulary"]), instances=loader.iter_instances())
    batches = batches_of(loader, vocab)
    # In random order, to get batches of all lengths.
    torch.manual_seed(1)
    return [batches[index] for index in torch.randperm(len(batches))[:n_batches]], vocab


class Step:
    """A training step on the next batch; the batches repeat."""

    def __init__(
        self, model: Model, batches: list[Batch], trainer: dict[str, Any], device: str
    ) -> None:
        self.model = model.to(device).train()
        self._batches: Iterator[Batch] = itertools.cycle(
            move_to_device(batches, torch.device(device))
        )
        parameters = [
            (name, value) for name, value in model.named_parameters() if value.requires_grad
        ]
        self._optimizer = Optimizer.from_params(
            Params(copy.deepcopy(trainer["optimizer"])), model_parameters=parameters
        )
        self._norm = trainer.get("grad_norm")
        self._parameters = [value for _, value in parameters]

    def __call__(self) -> None:
        self._optimizer.zero_grad()
        loss = self.model(**next(self._batches))["loss"]
        penalty = self.model.get_regularization_penalty()
        (loss if penalty is None else loss + penalty).backward()
        if self._norm:
            torch.nn.utils.clip_grad_norm_(self._parameters, self._norm)
        self._optimizer.step()


def seconds(run: Callable[[], object], times: int = 1) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    # With one thread, CPU time excludes the time that other processes take.
    clock = (
        time.process_time
        if torch.get_num_threads() == 1 and not torch.cuda.is_available()
        else time.perf_counter
    )
    start = clock()
    for _ in range(times):
        run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - start


def make(config: dict[str, Any], vocab: Vocabulary) -> Model:
    torch.manual_seed(0)
    return Model.from_params(Params(copy.deepcopy(config)), vocab=vocab)


def steps_of(
    task: str, n_batches: int, device: str, cache: Path, models: list[str]
) -> dict[str, Step]:
    baseline = Params.from_file(str(CONFIGS / f"{task}.jsonnet")).as_dict(quiet=True)
    overrides = {"model.bilm.cache_folder": str(cache)}
    with_elmo = Params.from_file(str(CONFIGS / f"{task}_elmo.jsonnet"), overrides).as_dict(
        quiet=True
    )
    batches, vocab = load(with_elmo, n_batches)
    steps = {
        "ours": Step(
            make(baseline["model"], vocab), without_elmo(batches), baseline["trainer"], device
        )
    }
    if "AllenNLP" in models:
        config = plain(baseline)
        model = make(allennlp_model(task, config["model"], vocab.get_vocab_size("labels")), vocab)
        theirs = allennlp_batches(task, without_elmo(batches), config, vocab)
        steps["AllenNLP"] = Step(model, theirs, config["trainer"], device)
    if "ours + ELMo" in models:
        steps["ours + ELMo"] = Step(
            make(with_elmo["model"], vocab), batches, with_elmo["trainer"], device
        )
    return steps


def without_elmo(value: Any) -> Any:
    """Batches without the character ids of the biLM, which an embedder without a biLM refuses."""
    if isinstance(value, list):
        return [without_elmo(one) for one in value]
    if isinstance(value, dict):
        return {key: without_elmo(one) for key, one in value.items() if key != "elmo"}
    return value


def compare(task: str, arguments: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with TemporaryDirectory() as cache:
        steps = steps_of(task, arguments.batches, device, Path(cache), arguments.models)
        times: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(arguments.repeats + 1):
            for name, step in steps.items():
                # The first turn warms up, and fills the cache.
                elapsed = seconds(step, arguments.batches) / arguments.batches
                times[name] += [elapsed] * (turn > 0)
    print(f"{task:6} ours {statistics.median(times['ours']):7.3f} s a step", flush=True)
    for name, measured in times.items():
        if name != "ours":
            ratios = [other / own for other, own in zip(measured, times["ours"], strict=True)]
            print(
                f"{'':6} {name:12} {statistics.median(measured):7.3f} s, {statistics.median(ratios):5.2f} of ours "
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
