"""
A small BERT or GPT, trained on the CPU on the words that a biLM is trained on: see README.md in this folder.

The batches are those of the data loader "elmo_lm" with the same numbers, in the same order. BERT predicts masked pieces
of words (15%), GPT the next piece; all else is the same in both: tokenizer, shape, optimizer.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch.utils.data import IterableDataset
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import get_last_checkpoint

from elmo_tasks.data.data_loaders.lm_batches import LmBatches
from elmo_tasks.data.formats.lm_text import LmText
from elmo_tasks.files.atomic_files import atomic_file

PAD, UNKNOWN, BEGIN, END, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# In pieces. `LmText` splits lines with more than 250 words, and what is beyond this of the others is cut.
POSITIONS = 320
# Where the cost is given in hours: steps that are timed, after others in which the process warms up.
TIMED, WARM_UP = 20, 5
# What must stay the same until a training is done.
FIXED = ("kind", "train", "hours", "steps", "tokens_per_batch", "pieces", "dim", "layers", "heads", "lr", "seed")


def main(arguments: list[str] | None = None) -> None:
    """Trains, or resumes, and writes the checkpoint."""
    asked = parser().parse_args(arguments)
    try:
        train(asked)
    except (ValueError, OSError) as error:
        sys.exit(f"train_transformer.py: error: {error}")


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    made = argparse.ArgumentParser(description="Train a small BERT or GPT; the same command resumes.")
    made.add_argument("kind", choices=list(NETWORKS))
    made.add_argument("folder", type=Path, help="for the checkpoint, and the training in FOLDER/training")
    made.add_argument("--train", required=True, help="a sentence a line: a file, a folder or a pattern")
    cost = made.add_mutually_exclusive_group(required=True)
    cost.add_argument("--steps", type=int, help="batches in all")
    cost.add_argument("--hours", type=float, help="hours of the CPU: a few steps are timed first, and fix the batches")
    made.add_argument("--tokens-per-batch", type=int, default=4096, help="words and the two boundaries of sentences")
    made.add_argument("--pieces", type=int, default=8000, help="entries of the tokenizer")
    made.add_argument("--dim", type=int, default=160)
    made.add_argument("--layers", type=int, default=5)
    made.add_argument("--heads", type=int, default=4)
    made.add_argument("--lr", type=float, default=0.001)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--save-steps", type=int, default=500)
    return made


def train(asked: argparse.Namespace) -> None:
    """Does what is not done yet; `asked` is what `parser` gives."""
    for name in ("steps", "hours", "tokens_per_batch", "save_steps"):
        if (value := getattr(asked, name)) is not None and value <= 0:
            raise ValueError(f"--{name.replace('_', '-')} must be above 0, but is {value}")
    text = LmText(asked.train)
    settings = {name: getattr(asked, name) for name in FIXED}
    plan_file, run = asked.folder / "plan.json", asked.folder / "training"
    plan = json.loads(plan_file.read_text(encoding="utf-8")) if plan_file.exists() else None
    if plan is not None and plan["settings"] != settings:
        changed = [name for name in settings if plan["settings"].get(name) != settings[name]]
        raise ValueError(
            f"{asked.folder} must be a new folder or that of the same training, but its training has another "
            f"{', '.join(changed)}"
        )
    asked.folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_of(asked.folder / "training_tokenizer", text, asked.pieces)
    if plan is None:
        steps = asked.steps or steps_in(asked.hours, asked, text, tokenizer)
        plan = {"settings": settings, "steps": steps}
        with atomic_file(plan_file) as temporary:
            temporary.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
    checkpoint = whole_checkpoint(run)
    trained, clock = trainer_of(asked, text, tokenizer, run, plan["steps"], checkpoint)
    trained.train(resume_from_checkpoint=checkpoint)
    network = trained.model.base_model
    network.save_pretrained(asked.folder)
    tokenizer.save_pretrained(asked.folder)
    report = {
        **plan,
        "parameters": sum(each.numel() for each in network.parameters()),
        "words": trained.train_dataset.n_words(plan["steps"]),
        "cpu_hours": round(clock.seconds / 3600, 4),
        "loss": [entry["loss"] for entry in trained.state.log_history if "loss" in entry][-1],
    }
    with atomic_file(asked.folder / "report.json") as temporary:
        temporary.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report))


def _bert(n_pieces: int, asked: argparse.Namespace) -> BertForMaskedLM:
    config = BertConfig(
        vocab_size=n_pieces,
        hidden_size=asked.dim,
        num_hidden_layers=asked.layers,
        num_attention_heads=asked.heads,
        intermediate_size=4 * asked.dim,
        max_position_embeddings=POSITIONS,
    )
    return BertForMaskedLM(config)


def _gpt(n_pieces: int, asked: argparse.Namespace) -> GPT2LMHeadModel:
    begin, end = SPECIAL.index(BEGIN), SPECIAL.index(END)
    config = GPT2Config(
        vocab_size=n_pieces,
        n_embd=asked.dim,
        n_layer=asked.layers,
        n_head=asked.heads,
        n_positions=POSITIONS,
        bos_token_id=begin,
        eos_token_id=end,
    )
    return GPT2LMHeadModel(config)


NETWORKS = {"bert": _bert, "gpt": _gpt}


def network_of(asked: argparse.Namespace, n_pieces: int) -> transformers.PreTrainedModel:
    """The network with random weights."""
    torch.manual_seed(asked.seed)
    return NETWORKS[asked.kind](n_pieces, asked)


def tokenizer_of(folder: Path, text: LmText, n_pieces: int) -> PreTrainedTokenizerFast:
    """Pieces of words, learned from the first million sentences; those of an interrupted call are kept."""
    if (folder / "tokenizer_config.json").exists():
        return PreTrainedTokenizerFast.from_pretrained(folder)
    made = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    made.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    lines = map(" ".join, islice(text, 1_000_000))
    made.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=n_pieces, special_tokens=list(SPECIAL)))
    ids = [(token, made.token_to_id(token)) for token in (BEGIN, END)]
    made.post_processor = processors.TemplateProcessing(single=f"{BEGIN} $A {END}", special_tokens=ids)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    # GPT-2 would add the vector of piece 0 for a type of 0.
    read = ["input_ids", "attention_mask"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=POSITIONS, model_input_names=read, **names
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


class Batches(IterableDataset):
    """The batches of a training, over and over through the text: a number, and sentences."""

    def __init__(self, text: LmText, max_tokens: int) -> None:
        # The numbers of the data loader "elmo_lm".
        self._batches = LmBatches(text, max_tokens=max_tokens, buffer_sentences=100_000, shuffle=True, seed=0)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        every = chain.from_iterable(map(self._batches.of_epoch, count()))
        return enumerate(every)

    def n_words(self, n_batches: int) -> int:
        """How many words so many batches have, counted once for each time that they are read."""
        every = chain.from_iterable(map(self._batches.of_epoch, count()))
        return sum(line.count(" ") + 1 for batch in islice(every, n_batches) for line in batch)


class Collator:
    """
    The tensors of a batch; which pieces are masked depends on seed and number of the batch alone. Those before the
    `first` are nothing: a training that is resumed skips them.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, *, is_masked: bool, seed: int, first: int = 0) -> None:
        self._tokenizer = tokenizer
        self._collate = transformers.DataCollatorForLanguageModeling(tokenizer, mlm=is_masked)
        self._seed = seed
        self._first = first

    def __call__(self, items: list[tuple[int, list[str]]]) -> dict[str, torch.Tensor]:
        ((number, sentences),) = items
        if number < self._first:
            return {}
        encoded = self._tokenizer(sentences, truncation=True, return_special_tokens_mask=True)
        rows = [{name: encoded[name][row] for name in encoded} for row in range(len(sentences))]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed * 1_000_003 + number)
            batch = self._collate(rows)
        return {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}


def loss_of(network: transformers.PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """
    The mean over the pieces of a batch that are predicted. Only these have logits, 15% of the pieces in BERT and no
    padding: those of all are half of what a step of BERT costs in the library.
    """
    # Shape: (batch_size, n_pieces, dim)
    hidden = network.base_model(batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    # Shape: (batch_size, n_pieces)
    labels = batch["labels"]
    if isinstance(network, GPT2LMHeadModel):
        hidden, labels, head = hidden[:, :-1], labels[:, 1:], network.lm_head
    else:
        head = network.cls
    is_predicted = labels != -100
    total = F.cross_entropy(head(hidden[is_predicted]), labels[is_predicted], reduction="sum")
    # A short batch may have no masked piece.
    return total / is_predicted.sum().clamp(min=1)


class Trainer(transformers.Trainer):
    """The library's, with our loss."""

    def compute_loss(
        self, model: transformers.PreTrainedModel, inputs: dict[str, torch.Tensor], *args: Any, **kwargs: Any
    ) -> torch.Tensor:
        """Calls `loss_of`."""
        return loss_of(model, inputs)


class CpuClock(transformers.TrainerCallback, ExportableState):
    """The time that the CPU has spent on a training, in all its calls together."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last = time.process_time()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Adds a step."""
        now = time.process_time()
        self.seconds += now - self._last
        self._last = now

    def state(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"args": {}, "attributes": {"seconds": self.seconds}}


def whole_checkpoint(run: Path) -> str | None:
    """The last checkpoint of a run that was written to its end; later ones, which a kill has cut off, are removed."""
    if not run.is_dir():
        return None
    while (checkpoint := get_last_checkpoint(str(run))) is not None:
        try:
            json.loads(Path(checkpoint, "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
        else:
            return str(checkpoint)
    return None


def trainer_of(
    asked: argparse.Namespace,
    text: LmText,
    tokenizer: PreTrainedTokenizerFast,
    folder: Path,
    steps: int,
    checkpoint: str | None,
) -> tuple[Trainer, CpuClock]:
    """The trainer of a training of so many steps, and its clock."""
    done = 0 if checkpoint is None else int(checkpoint.rpartition("-")[2])
    clock = CpuClock()
    if checkpoint is not None:
        saved = json.loads(Path(checkpoint, "trainer_state.json").read_text(encoding="utf-8"))
        clock.seconds = saved["stateful_callbacks"]["CpuClock"]["attributes"]["seconds"]
    options = transformers.TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        max_steps=steps,
        per_device_train_batch_size=1,
        learning_rate=asked.lr,
        lr_scheduler_type="linear",
        warmup_steps=max(1, steps // 10),
        weight_decay=0.01,
        save_steps=asked.save_steps,
        save_total_limit=2,
        logging_steps=max(1, min(100, steps // 10)),
        report_to=[],
        seed=asked.seed,
        remove_unused_columns=False,
        accelerator_config={"dispatch_batches": False},
    )
    trainer = Trainer(
        model=network_of(asked, len(tokenizer)),
        args=options,
        train_dataset=Batches(text, asked.tokens_per_batch),
        data_collator=Collator(tokenizer, is_masked=asked.kind == "bert", seed=asked.seed, first=done),
        callbacks=[clock],
    )
    return trainer, clock


def steps_in(hours: float, asked: argparse.Namespace, text: LmText, tokenizer: PreTrainedTokenizerFast) -> int:
    """How many steps take so many hours of the CPU, by a few that are thrown away."""
    network = network_of(asked, len(tokenizer)).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5)
    collate = Collator(tokenizer, is_masked=asked.kind == "bert", seed=asked.seed)
    start = 0.0
    for number, item in enumerate(islice(Batches(text, asked.tokens_per_batch), WARM_UP + TIMED)):
        if number == WARM_UP:
            start = time.process_time()
        optimizer.zero_grad()
        loss_of(network, collate([item])).backward()
        optimizer.step()
    seconds = (time.process_time() - start) / TIMED
    steps = max(1, round(hours * 3600 / seconds))
    print(f"{seconds:.3g} s a step: {steps:,} steps take {hours:g} hours of the CPU")
    return steps


if __name__ == "__main__":
    main()
