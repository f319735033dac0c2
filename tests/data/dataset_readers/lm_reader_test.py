from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.data import DatasetReader
from allennlp.data.data_loaders import MultiProcessDataLoader

from elmo_tasks.data import LmDataLoader, LmReader, LmVocabulary


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("a b a\n\nc <S> ça\nd\n")
    return path


class TestLmReader:
    def test_it_is_registered_and_has_the_options_of_the_text(self, path):
        reader = DatasetReader.from_params(Params({"type": "elmo_lm", "max_words": 2, "long_lines": "skip"}))
        assert isinstance(reader, LmReader)
        assert [instance["word_ids"].words for instance in reader.read(path)] == [["d"]]

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_its_instances_give_what_the_data_loader_gives(self, path, num_workers):
        ours = LmDataLoader(LmReader(), path, max_tokens_per_batch=252, shuffle=False)
        theirs = MultiProcessDataLoader(LmReader(), path, batch_size=3, num_workers=num_workers)
        vocabulary = LmVocabulary.from_counts(ours.iter_instances(), max_words=5)
        ours.index_with(vocabulary)
        theirs.index_with(vocabulary)
        (expected,) = ours
        (actual,) = theirs
        assert actual.keys() == expected.keys()
        order = expected["word_ids"].ge(0).sum(-1)
        assert order.tolist() == [1, 3, 3]
        for name, tensor in actual.items():
            assert tensor.dtype == torch.long
            assert sorted(tensor.tolist()) == sorted(expected[name].tolist())
