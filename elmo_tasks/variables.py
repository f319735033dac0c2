"""The environment variables that a user of this package may want to set; the table in the docs is made of these."""

from dataclasses import dataclass

__all__ = ["VARIABLES", "Variable"]


@dataclass(frozen=True)
class Variable:
    """
    # Parameters

    name
        The variable.
    default
        Its value, or the behaviour, where it is not set.
    meaning
        One sentence or two.
    """

    name: str
    default: str
    meaning: str


VARIABLES = (
    Variable(
        "ELMO_TASKS_DATA",
        "the small data that ships",
        "The folder with the data sets of the configs and commands: `ner/`, `srl/`, `snli/`, `squad/`, `coref/`, "
        "`sst/`, `pos/`, `wsd/`, `lm/` and, for word vectors, `glove/`.",
    ),
    Variable(
        "ELMO_TASKS_GLOVE",
        "the only file in `glove/` of the data; of several, and of what ships, `glove.open.100d.txt.gz`",
        "The name of a file of word vectors in the folder `glove/` of the data, such as `glove.6B.100d.txt`; the "
        "width of the vectors is read from the name.",
    ),
    Variable(
        "ELMO_TASKS_BILM",
        "`small-open`, the small biLM that ships",
        "The biLM of the configs and commands: a name that `Elmo.from_pretrained` knows (such as `original`, which is "
        "downloaded when it is first used), a folder with `options.json` and `weights.hdf5`, or, for training, the URL "
        "of one.",
    ),
    Variable(
        "ELMO_TASKS_LAYER",
        "`1`, the lowest LSTM",
        "The layer for the config `pos_layer.jsonnet`: a number (0 is the context-insensitive layer), `top` or `mix`.",
    ),
    Variable(
        "ELMO_TASKS_CACHE",
        "no cache",
        "A folder in which models keep the layers of the biLM, so that a sentence is computed once over all epochs "
        "and runs; the readers of SNLI and SQuAD keep the tokens of their data there.",
    ),
    Variable(
        "ELMO_TASKS_HOME",
        "`~/.cache/elmo_tasks`",
        "The folder of biLMs that were downloaded by their name.",
    ),
    Variable(
        "ELMO_TASKS_ALLOW_PICKLE",
        "objects other than tensors and numbers are refused",
        "With `1`, `allennlp train --recover` and tensor caches unpickle whatever a file holds, which runs the code "
        "that the file names: only for files of your own.",
    ),
    Variable(
        "ELMO_TASKS_ALLOW_SHARED",
        "folders that others can write to are refused",
        "With `1`, the layer cache and the folder of downloaded biLMs may belong to other users, or be writable for "
        "them: only if you trust all of them.",
    ),
    Variable(
        "ELMO_TASKS_CUDA_GRAPHS",
        "graphs, where they pass their test",
        "With `0`, the biLM computes on CUDA with torch's own kernels alone: without recorded graphs and without "
        "Triton's kernels.",
    ),
    Variable(
        "ALLENNLP_LOG_LEVEL",
        "`INFO`",
        "AllenNLP: the lowest level of what `allennlp` logs; with `WARNING` it is quiet.",
    ),
    Variable(
        "ALLENNLP_DEBUG",
        "not set",
        "AllenNLP: any value that is not empty makes `allennlp` log everything; it takes precedence over "
        "`ALLENNLP_LOG_LEVEL`.",
    ),
    Variable(
        "ALLENNLP_CACHE_ROOT",
        "`~/.allennlp`",
        "AllenNLP: the folder of what was downloaded because a config names it by its URL.",
    ),
    Variable(
        "OMP_NUM_THREADS",
        "all cores",
        "torch: how many threads compute. `allennlp elmo-tables --jobs N` divides the cores where it is not set.",
    ),
    Variable(
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
        "`1`",
        "torch: whether `import torch` loads its extensions. With `0` it does not call `elmo_tasks.compat`, without "
        "which AllenNLP does not start.",
    ),
    Variable(
        "CUDA_VISIBLE_DEVICES",
        "all GPUs",
        "CUDA: the numbers of the GPUs that a process may use; with an empty value it computes on the CPU.",
    ),
)
"""Of this package, where an empty value counts as not set; and those of AllenNLP and torch that matter."""
