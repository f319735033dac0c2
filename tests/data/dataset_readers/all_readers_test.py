"""Tests of what AllenNLP expects of every dataset reader."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance
from allennlp.data.dataset_readers.dataset_reader import WorkerInfo
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data import ElmoTokenIndexer
from tests.data.dataset_readers.instances import words_in
from tests.paths import FIXTURES

# A small file for each registered task reader.
FILES = {
    "elmo_coref": FIXTURES / "coref" / "dev.conll",
    "elmo_ner": FIXTURES / "ner" / "dev.txt",
    "elmo_pos": FIXTURES / "pos" / "dev.conllu",
    "elmo_snli": FIXTURES / "snli" / "dev.jsonl",
    "elmo_squad": FIXTURES / "squad" / "dev.json",
    "elmo_srl": FIXTURES / "srl" / "dev",
    "elmo_sst": FIXTURES / "sst" / "dev.txt",
}


@pytest.fixture(params=FILES)
def name(request: pytest.FixtureRequest, environment: pytest.MonkeyPatch) -> str:
    return request.param


def reader_of(name: str, **arguments: Any) -> DatasetReader:
    return DatasetReader.from_params(Params({"type": name, **arguments}))


def texts_of(instance: Instance) -> list[TextField]:
    texts = []
    for field in instance.fields.values():
        if isinstance(field, TextField):
            texts.append(field)
        elif isinstance(field, ListField):
            texts += field
    return texts


def words_of(instances: Iterable[Instance]) -> list[list[list[str]]]:
    """The words of each text of each instance."""
    words_of_instances = []
    for instance in instances:
        words_of_instances.append(list(map(words_in, texts_of(instance))))
    return words_of_instances


class TestEveryReader:
    def test_it_is_made_from_a_config(self, name):
        reader = reader_of(name, token_indexers={"x": {"type": "elmo"}}, max_instances=2)
        instances = list(reader.read(FILES[name]))
        assert len(instances) == 2
        for instance in instances:
            for text in texts_of(instance):
                assert isinstance(text.token_indexers["x"], ElmoTokenIndexer)

    def test_the_default_is_an_index_for_each_word(self, name):
        instance = next(iter(reader_of(name).read(FILES[name])))
        for text in texts_of(instance):
            assert isinstance(text.token_indexers["tokens"], SingleIdTokenIndexer)

    def test_workers_share_a_file_out(self, name):
        expected = words_of(reader_of(name).read(FILES[name]))
        instances_of_workers = []
        for worker in range(3):
            reader = reader_of(name)
            reader._set_worker_info(WorkerInfo(3, worker))
            instances_of_workers.append(words_of(reader.read(FILES[name])))
        assert sorted(chain.from_iterable(instances_of_workers)) == sorted(expected)
        counts = list(map(len, instances_of_workers))
        assert max(counts) - min(counts) <= 1
