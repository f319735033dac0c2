"""Tests of the batches of a student."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.dataset_readers.ner_reader import NerReader
from elmo_tasks.distillation import DistillationDataLoader

TEXTS = [["One", "two", "three"], ["four"], ["five", "six"], ["seven"], ["eight", "nine"]]
COLUMNS = "U.N. -X- O B-ORG\nofficial -X- O O\n\nParis -X- O B-LOC\n\nno -X- O O\n"


def write_parts(folder: Path) -> list[np.ndarray]:
    """Five texts in two parts; the probabilities of three labels for the words of each."""
    generator = np.random.default_rng(0)
    all_of = [generator.random((len(text), 3)).astype(np.float16) for text in TEXTS]
    folder.mkdir()
    for number, rows in enumerate((slice(0, 3), slice(3, 5))):
        texts = [[text] for text in TEXTS[rows]]
        arrays: dict[str, Any] = {
            "content": np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8),
            "logits": -np.concatenate(all_of[rows]),
            "probabilities": np.concatenate(all_of[rows]),
            "ends": np.cumsum([len(text) for text in TEXTS[rows]]),
            "is_tagger": np.array(True),
        }
        np.savez(folder / f"part-{number:05}.npz", **arrays)
    return all_of


@pytest.fixture
def make(tmp_path):
    """A loader of three labelled sentences, and the teacher's five in batches of a size."""
    (tmp_path / "train.txt").write_text(COLUMNS)
    probabilities = write_parts(tmp_path / "teacher")

    def loader(batch_size: int, values: str = "probabilities", n_texts: int = 5) -> DistillationDataLoader:
        reader = NerReader(token_indexers={"tokens": SingleIdTokenIndexer()})

        def each(reader: NerReader, data_path: str) -> SimpleDataLoader:
            return SimpleDataLoader(list(reader.read(data_path)), batch_size)

        made = DistillationDataLoader(
            reader, str(tmp_path / "train.txt"), str(tmp_path / "teacher"), n_texts, "digest", values, Lazy(each)
        )
        made.index_with(Vocabulary.from_instances(made.iter_instances()))
        return made

    return loader, probabilities


class TestDistillationDataLoader:
    def test_without_a_batch_of_one_kind_an_epoch_is_an_error(self, make):
        """Oracle: the message; an epoch that would never end otherwise."""
        loader = make[0](2)
        loader._labelled = []
        with pytest.raises(ConfigurationError, match="the labelled data have none: with 'drop_last'"):
            next(iter(loader))

    def test_an_epoch_is_a_pass_over_the_longer_and_repeats_the_shorter(self, make):
        """Oracle: by hand: three labelled sentences and five of the teacher's, two at once."""
        loader = make[0](2)
        batches = list(loader)
        assert len(loader) == len(batches) == 3
        sizes = [(len(b["labelled"]["metadata"]), len(b["unlabelled"]["metadata"])) for b in batches]
        assert sizes == [(2, 2), (1, 2), (2, 1)]
        words = [each["words"] for batch in batches for each in batch["unlabelled"]["metadata"]]
        assert words == TEXTS

    @pytest.mark.parametrize("n_texts", [2, 3, 4])
    def test_parts_of_more_texts_are_left(self, make, n_texts):
        """Oracle: by hand: an earlier call had more texts."""
        batches = list(make[0](3, n_texts=n_texts)._unlabelled)
        words = [each["words"] for batch in batches for each in batch["metadata"]]
        assert words == TEXTS[:n_texts]

    @pytest.mark.parametrize(("values", "sign"), [("probabilities", 1), ("logits", -1)])
    def test_a_text_has_the_numbers_of_its_teacher_and_no_gold(self, make, values, sign):
        """Oracle: the arrays of the parts, padded with zeros."""
        make, probabilities = make
        (batch,) = make(5, values)
        assert "tags" in batch["labelled"] and "tags" not in batch["unlabelled"]
        found = batch["unlabelled"]["teacher"]
        assert found.shape == (5, 3, 3)
        for row, expected in zip(found, probabilities, strict=True):
            assert torch.equal(row[: len(expected)], torch.from_numpy(sign * expected))
            assert not row[len(expected) :].any()

    def test_the_vocabulary_is_that_of_the_labelled_data(self, make):
        """Oracle: by hand: the student has no more parameters than without text."""
        vocabulary = Vocabulary.from_instances(make[0](2).iter_instances())
        words = vocabulary.get_token_to_index_vocabulary("tokens").keys()
        assert {"Paris", "U.N."} <= words and not {"seven", "nine"} & words

    def test_a_damaged_part_is_an_error(self, make, tmp_path):
        """Oracle: the message names the file."""
        (tmp_path / "teacher" / "part-00001.npz").write_bytes(b"PK")
        with pytest.raises(ValueError, match=r"part-00001\.npz must be what a teacher has said of a text, but is dam"):
            make[0](2)
