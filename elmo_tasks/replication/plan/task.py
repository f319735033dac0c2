"""The tasks of the tables and figures."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["LAYER_NAMES", "POS", "SIX_TASKS", "TASKS", "Task"]


@dataclass(frozen=True)
class Task:
    """
    A task of the paper: how it is scored, and where its template has ELMo.

    # Parameters

    name
        The template `training_configs/lib/<name>.libsonnet`, and the folder of its data.
    title
        As the paper calls it.
    score
        The paper's measure.
    metric
        The metric of our models for it, from 0 to 1, without `best_validation_` or `test_`.
    places
        Where the paper's Table 1 has ELMo; nowhere if it is not about the task.
    l2
        The paper's lambda there; the template's default.
    split
        The set that Table 1 is about.
    differences
        How our model and its data differ from the paper's.
    """

    name: str
    title: str
    score: str
    metric: str
    places: tuple[str, ...]
    l2: float
    differences: tuple[str, ...]
    split: Literal["dev", "test"] = "test"


_BOTH = ("input", "output")

SIX_TASKS = {
    task.name: task
    for task in (
        Task(
            name="squad",
            title="SQuAD",
            score="F1",
            metric="f1",
            places=_BOTH,
            l2=0.0,
            # SQuAD's test set is not public.
            split="dev",
            differences=(
                "the dev set, where the paper's Table 1 has the test set, which is not public",
                "words in lower case for GloVe",
                "a biLM that was not fine-tuned on the task's text",
                "a word cannot attend to nothing",
                "a word without a vector has a fixed random one, not zeros",
                "no dropout of characters",
                "Adadelta with torch's epsilon of 1e-6, where TensorFlow's is 1e-8, and longer steps at first",
            ),
        ),
        Task(
            name="snli",
            title="SNLI",
            score="accuracy",
            metric="accuracy",
            places=_BOTH,
            l2=0.001,
            differences=(
                "layer normalisation of each word's vector, not over a batch",
                "a biLM that was not fine-tuned on the task's text",
            ),
        ),
        Task(
            name="srl",
            title="SRL",
            score="F1",
            metric="f1",
            places=("input",),
            l2=0.001,
            differences=("only V is marked as the predicate",),
        ),
        Task(
            name="coref",
            title="Coref",
            score="mean F1",
            metric="coref_f1",
            places=("input",),
            l2=0.0,
            differences=(
                "GloVe alone, in lower case, without Turian's vectors",
                "vectors that are not normalised to length 1; a word without one has a fixed random one, not zeros",
                "a plain LSTM, without dropout of its state, whose first state is zero",
            ),
        ),
        Task(
            name="ner",
            title="NER",
            score="F1",
            metric="f1-measure-overall",
            places=("input",),
            l2=0.1,
            differences=(
                "GloVe, tuned, in place of Senna's vectors",
                "no features of the characters of words that are shorter than the filters",
            ),
        ),
        Task(
            name="sst",
            title="SST-5",
            score="accuracy",
            metric="accuracy",
            places=_BOTH,
            l2=0.001,
            differences=("no batch normalisation", "half of ELMo is dropped out at the output"),
        ),
    )
}

# Table 6, the only one that is about it.
POS = Task(
    name="pos",
    title="POS",
    score="accuracy",
    metric="accuracy",
    places=(),
    l2=0.0,
    differences=("a linear classifier that is trained with Adam; the paper does not say how",),
)

# Of the biLM in Tables 5 and 6; the paper omits the context-insensitive one.
LAYER_NAMES = ("biLM, context-insensitive layer", "biLM, first layer", "biLM, second layer")

TASKS = {**SIX_TASKS, POS.name: POS}
