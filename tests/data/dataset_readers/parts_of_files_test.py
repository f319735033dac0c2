"""Parts of data files, as in `train.txt[:80%]`."""

from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.data import NerReader

N_SENTENCES = 40


@pytest.fixture
def data(tmp_path) -> Path:
    """A file of sentences of one word, which is their number."""
    path = tmp_path / "dev.txt"
    path.write_text("".join(f"{number} O\n\n" for number in range(N_SENTENCES)))
    return path


def numbers(path: str) -> list[int]:
    instances = NerReader().read(path)
    return [int(instance["tokens"].tokens[0].text) for instance in instances]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("", range(40)),
        ("[:100%]", range(40)),
        ("[0%:]", range(40)),
        ("[:80%]", range(32)),
        ("[80%:100%]", range(32, 40)),
        ("[20%:40%]", range(8, 16)),
        ("[ 5% : 12.5% ]", range(2, 5)),
        ("[:20%+40%:]", [*range(8), *range(16, 40)]),
        ("[:5%+10%:15%+95%:]", [0, 1, 4, 5, 38, 39]),
    ],
)
def test_any_two_percentages(data, part, expected):
    assert numbers(f"{data}{part}") == list(expected)


@pytest.mark.parametrize(
    "part",
    ["[:5]", "[0:5]", "[5:]", "[80%]", "[:0.8]", "[:120%]", "[50%:50%]", "[60%:+:20%]", "[:%]"],
)
def test_other_numbers_are_an_error(data, part):
    with pytest.raises(ConfigurationError) as caught:
        numbers(f"{data}{part}")
    assert f"got {part}: {data}" in caught.value.message


def test_folds_are_all_sentences_once(data):
    parts = [f"[{start}%:{start + 20}%]" for start in range(0, 100, 20)]
    sentences = [number for part in parts for number in numbers(f"{data}{part}")]
    assert sentences == list(range(N_SENTENCES))


def test_the_name_of_an_existing_file_is_a_name(data):
    odd = data.rename(data.with_name("dev[:5]"))
    assert numbers(str(odd)) == list(range(N_SENTENCES))
